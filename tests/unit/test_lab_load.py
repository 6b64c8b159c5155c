"""The load of `bettong lab run`: what is due when, and modules that give none."""

from __future__ import annotations

import itertools
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.errors import SettingsError
from bettong.lab.load import LoadPart, Pace, due_frames, make_load
from bettong.lab.spec import LoadStep, read, read_all

STEPS = st.lists(
    st.builds(LoadStep, messages_per_s=st.integers(1, 10_000), seconds=st.integers(1, 20)),
    min_size=1,
    max_size=4,
)


@given(STEPS)
def test_messages_are_due_in_order_each_within_its_step(steps: list[LoadStep]) -> None:
    pace = Pace(steps)
    numbers = np.unique(np.linspace(0, pace.messages - 1, 200).astype(int)).tolist()
    due_s = [pace.due_s(number) for number in numbers]
    assert due_s == sorted(due_s)
    assert due_s[0] == 0.0
    begun_s = 0.0
    for index, step in enumerate(steps):
        own = [at_s for number, at_s in zip(numbers, due_s, strict=True) if pace.step_of(number) == index]
        assert all(begun_s <= at_s < begun_s + step.seconds + 1e-9 for at_s in own)
        begun_s += step.seconds


def test_as_fast_as_it_goes_all_is_due_at_once() -> None:
    pace = Pace([])
    assert (pace.due_s(0), pace.due_s(10**6), pace.messages) == (0.0, 0.0, 0)


def test_nothing_is_due_in_a_step_without_messages() -> None:
    pace = Pace([LoadStep(messages_per_s=rate, seconds=10) for rate in (0, 2, 0, 1, 0)])
    assert pace.messages == 30
    assert [pace.step_of(number) for number in (0, 19, 20, 29)] == [1, 1, 3, 3]
    assert [pace.due_s(number) for number in (0, 19, 20, 29)] == [10.0, 19.5, 30.0, 39.0]
    assert pace.due_s(-1) < 0.0
    idle = Pace([LoadStep(messages_per_s=0, seconds=10)])
    assert list(due_frames(iter([]), 10, idle)) == []


def test_what_came_first_is_due_before_the_first_message() -> None:
    for steps in ([], [LoadStep(messages_per_s=0, seconds=10), LoadStep(messages_per_s=2, seconds=10)]):
        assert Pace(steps).due_s(-1) < 0.0


def part(source: str, values: Sequence[int]) -> LoadPart:
    return LoadPart(source, {"value": np.array(values)})


def test_the_parts_of_a_round_are_cut_into_frames_in_turns_and_end_together() -> None:
    rounds = [[part("a", range(5)), part("b", range(3)), part("c", [])], [part("a", [7])]]
    pace = Pace([LoadStep(messages_per_s=2, seconds=100)])
    frames = list(due_frames(iter(rounds), 2, pace))
    assert [(each.part.source, each.part.columns["value"].tolist()) for each in frames] == [
        ("a", [0, 1]),
        ("b", [0]),
        ("a", [2, 3]),
        ("b", [1]),
        ("a", [4]),
        ("b", [2]),
        ("a", [7]),
    ]
    assert [each.due_s for each in frames] == [0.0, 1.0, 1.5, 2.5, 3.0, 3.5, 4.0]
    assert [each.ends_round for each in frames] == [False, False, False, False, False, True, True]


@given(
    st.lists(st.integers(0, 2_000), min_size=1, max_size=5),
    st.integers(1, 300),
)
def test_a_mix_is_the_same_from_the_beginning_to_the_end(lengths: list[int], frame_messages: int) -> None:
    """But for a turn, in which one comes after the other, and the message that would be the next one."""
    parts = [part(str(number), range(length)) for number, length in enumerate(lengths)]
    longest = max(parts, key=lambda each: each.messages)
    sent: dict[str, list[int]] = {each.source: [] for each in parts}
    for frame in due_frames(iter([parts]), frame_messages, Pace([])):
        assert 0 < frame.part.messages <= frame_messages
        sent[frame.part.source] += frame.part.columns["value"].tolist()
        for each in parts:
            if each.messages:
                ahead = len(sent[each.source]) * longest.messages / each.messages - len(sent[longest.source])
                assert abs(ahead) <= frame_messages + longest.messages / each.messages
    assert sent == {each.source: list(range(each.messages)) for each in parts}


def test_frames_are_made_as_they_are_sent() -> None:
    """A round may hold millions of messages, each a frame."""
    parts = [LoadPart("a", {"value": np.zeros(50_000_000, np.int8)})]
    frames = due_frames(iter([parts]), 1, Pace([LoadStep(messages_per_s=1000, seconds=50_000)]))
    assert [each.due_s for each in itertools.islice(frames, 3)] == [0.0, 0.001, 0.002]


class Load:
    """Two numbers, no results."""

    def first(self) -> Sequence[LoadPart]:
        return []

    def rounds(self) -> Iterator[Sequence[LoadPart]]:
        yield [part("a", [1, 2])]

    def result_bytes(self) -> Mapping[str, int]:
        return {}

    def wrong(self, results: Mapping[str, bytes]) -> str:
        return "" if not results else "results"


GOOD = f"from {__name__} import Load\n\ndef load(messages, seed):\n    return Load()\n"


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (None, "is no Python file"),
        ("1 +", "SyntaxError"),
        ("raise ValueError('gone')", "ValueError: gone"),
        ("x = 1", "needs a function load"),
        (
            "def load(messages, seed):\n    return 1",
            "returned a int, without first, rounds, result_bytes and wrong",
        ),
        ("def load(messages):\n    return 1", "TypeError"),
        ("raise SystemExit(0)", "SystemExit: 0"),
        ("import sys\n\ndef load(messages, seed):\n    sys.exit(0)", "load.py:4 in load: SystemExit: 0"),
    ],
)
def test_a_file_that_gives_no_load_is_named(text: str | None, says: str, tmp_path: Path) -> None:
    file = tmp_path / "load.py"
    if text is not None:
        file.write_text(text)
    with pytest.raises(SettingsError, match=says) as raised:
        make_load(str(file), 10, 1)
    assert "load.py" in str(raised.value)


def test_a_load_is_what_its_function_returns(tmp_path: Path) -> None:
    (tmp_path / "load.py").write_text(GOOD)
    assert [len(parts) for parts in make_load(str(tmp_path / "load.py"), 10, 1).rounds()] == [1]


FAILS = f"""from {__name__} import Load

class Fails(Load):
    def first(self):
        print("made")
        raise ValueError("gone")

    def rounds(self):
        print("made")
        yield []
        raise ValueError("gone")

    def result_bytes(self):
        print("made")
        raise ValueError("gone")

    def wrong(self, results):
        print("made")
        raise ValueError("gone")

    def message_of(self, result):
        print("made")
        raise ValueError("gone")

def load(messages, seed):
    return Fails()
"""


@pytest.mark.parametrize(
    "call",
    [
        lambda load: load.first(),
        lambda load: list(load.rounds()),
        lambda load: load.result_bytes(),
        lambda load: load.wrong({}),
        lambda load: load.message_of(b""),
    ],
    ids=["first", "rounds", "result_bytes", "wrong", "message_of"],
)
def test_what_a_load_raises_names_its_file_and_what_it_prints_is_no_output(
    call: Callable[[Any], object], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "load.py").write_text(FAILS)
    load = make_load(str(tmp_path / "load.py"), 10, 1)
    with pytest.raises(
        SettingsError, match=r"load: .*/load\.py, load\.py:\d+ in Fails\.\w+: ValueError: gone"
    ):
        call(load)
    assert capsys.readouterr() == ("", "made\n")


def test_a_load_imports_what_lies_beside_it_and_below_the_working_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "loads").mkdir()
    (tmp_path / "loads" / "beside_the_load.py").write_text(f"from {__name__} import Load")
    (tmp_path / "below_the_folder.py").write_text("")
    (tmp_path / "loads" / "load.py").write_text(
        "import below_the_folder\nfrom beside_the_load import Load\n\ndef load(messages, seed):\n    return Load()\n"
    )
    monkeypatch.chdir(tmp_path)
    before = list(sys.path)
    make_load("loads/load.py", 10, 1)
    assert sys.path == before


STEP = "[[steps]]\nmessages_per_s = 1\nseconds = 8\n"
TABLE = '[[load.sources]]\nsource = "in"\n[load.sources.fields]\namount = {{ kind = "constant", value = {value} }}\n'
RUN = 'name = "x"\napplication = "app.py"\nload = "load.py"\n'


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (RUN, "needs steps, or messages"),
        (RUN + "messages = 1\n[[steps]]\nmessages_per_s = 1\nseconds = 1\n", "and not both"),
        (RUN + "messages = 1\n[objective]\np99_ms = 5\n", "an objective is about a rate"),
        (RUN + "[[steps]]\nmessages_per_s = -1\nseconds = 1\n", r"steps\[0\]\.messages_per_s"),
        (
            RUN + "[[steps]]\nmessages_per_s = 0\nseconds = 1\n[objective]\np99_ms = 5\n",
            "an objective is about latency: give a step that has messages",
        ),
        (
            RUN + "[[steps]]\nmessages_per_s = 9\nseconds = 5\n",
            "warm_up_s is 5 and the first step takes 5 s, so none of its latencies.*make that step longer",
        ),
        (RUN + "warm_up_s = 8.5\n" + STEP, "warm_up_s is 8.5 and the first step takes 8 s"),
        (
            RUN + STEP + "[[steps]]\nmessages_per_s = 0.1\nseconds = 9\n",
            r"steps\[1\]: 0\.1 messages/s for 9 s are less than one message: give a higher rate, or a longer step",
        ),
        (RUN + "messages = 1\nsped = 3\n", "sped: there is no such field; is seed meant"),
        (RUN + "messages = 1\npartitions = 0\nrepeats = 0\n", r"2 fault\(s\)"),
        (
            RUN + STEP + '[[faults]]\nkind = "kill"\ntargets = ["kafka"]\nat_s = [9]\n',
            "a fault at 9 s: the run lasts 8 s",
        ),
        (
            RUN + STEP + '[[faults]]\nkind = "kill"\ntargets = ["kofka"]\nat_s = [1]\n',
            r"faults\[0\]\.targets\[0\].*kofka",
        ),
        (
            RUN + STEP + '[[faults]]\nkind = "wipe"\nevery_s = [100, 200]\n',
            r"faults\[0\]: it may never be injected from 0 to .* s of the run: give an earlier time",
        ),
        (RUN + STEP + '[[faults]]\nkind = "cut"\nat_s = [1]\n', r"faults\[0\]"),
        (
            RUN + STEP + '[[faults]]\nkind = "kill"\ntargets = ["spark-executor"]\nat_s = [1]\n',
            r"faults\[0\]: without a local cluster .* no spark-executor runs: give settings",
        ),
        (RUN + 'messages = 1\n[[faults]]\nkind = "wipe"\nat_s = [1]\n', "faults come at times of a run"),
        ("name = ", "is not TOML"),
        (
            RUN + 'messages = 1\n[settings]\nsnapshot_interval = "9"\n',
            "settings: there is no setting 'snapshot_interval'; is snapshot_interval_ms meant",
        ),
        (
            RUN + 'messages = 1\n[settings]\nBETTONG_MEASURES = "off"\n',
            "there is no setting 'BETTONG_MEASURES'; is measures meant",
        ),
        (RUN + 'messages = 1\n[settings]\nx = "9"\n', "there is no setting 'x'; docs/settings.md lists all"),
        (
            RUN + 'messages = 1\n[settings]\npartitions = "9"\nschedule = "resident"\n',
            "settings: partitions, schedule: give it as a field of the run",
        ),
        (
            RUN + 'messages = 1\n[settings]\nkafka = "a:1"\n',
            "settings: kafka: a run starts its own Kafka and Redis",
        ),
        (RUN + 'messages = 1\ncompiled = "no"\n', "compiled"),
        (RUN.replace("app.py", "") + "messages = 1\n", "application"),
        *(
            (
                RUN.replace('load = "load.py"\n', "messages = 1\n") + TABLE.format(value=value),
                r"load\.sources\[0\]\.fields\.amount",
            )
            for value in ("nan", "inf")
        ),
    ],
)
def test_a_run_file_that_is_wrong_is_named_with_all_its_faults(text: str, says: str, tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(text)
    with pytest.raises(SettingsError, match=says) as raised:
        read(tmp_path / "run.toml")
    assert "run.toml" in str(raised.value)


def test_a_step_of_one_message_and_a_warm_up_a_little_shorter_than_the_first_step_are_right(
    tmp_path: Path,
) -> None:
    text = RUN + "warm_up_s = 7.9\n" + STEP + "[[steps]]\nmessages_per_s = 0.1\nseconds = 10\n"
    (tmp_path / "run.toml").write_text(text)
    assert [step.messages for step in read(tmp_path / "run.toml").steps] == [8, 1]


def test_the_run_files_of_the_tree_are_right() -> None:
    files = sorted((Path(__file__).parents[2] / "benchmarks" / "lab").glob("*.toml"))
    assert files
    for file in files:
        spec = read(file)
        assert Path(spec.application).exists()
        assert not isinstance(spec.load, str) or Path(spec.load).exists()


def test_an_objective_is_judged_where_one_step_has_messages(tmp_path: Path) -> None:
    (tmp_path / "run.toml").write_text(
        RUN + STEP + STEP.replace("= 1\n", "= 0\n") + "[objective]\np99_ms = 5\n"
    )
    assert [each.messages for each in read(tmp_path / "run.toml").steps] == [8, 0]


def test_two_run_files_of_one_name_do_not_take_turns(tmp_path: Path) -> None:
    for name in ("a", "b"):
        (tmp_path / f"{name}.toml").write_text(RUN + "messages = 1\n")
    with pytest.raises(SettingsError, match="two run files are called 'x'"):
        read_all([tmp_path / "a.toml", tmp_path / "b.toml"])
