"""A spec made ready: inputs are counted and spread, and all that is wrong is reported before anything runs."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.chaos import disk
from bettong.chaos.feeding import InputFeed
from bettong.chaos.golden import golden
from bettong.chaos.preparing import disk_mb, prepare
from bettong.chaos.spec import Spec, checked
from bettong.client.message_files import Format, portions
from bettong.client.message_input import Wanted
from bettong.errors import ApplicationError, BettongError, SchemaError, SettingsError
from bettong.local.options import SuiteOptions

ROOT = Path(__file__).parents[2]
WORDS = str(ROOT / "examples" / "word_count.py")
LINES = "".join(f"line {number}\n" for number in range(1000))


def spec(
    application: str = WORDS,
    inputs: tuple[tuple[str, str], ...] = (("lines", "lines.txt"),),
    workload: Mapping[str, object] | None = None,
    **more: object,
) -> Spec:
    tables = {
        "name": "s",
        "duration_s": 10,
        "workload": {
            "application": application,
            "inputs": [{"source": source, "file": file} for source, file in inputs],
            **(workload or {}),
        },
        **more,
    }
    return checked(tables, "a test")


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "lines.txt").write_text(LINES)
    (tmp_path / "empty.txt").write_text("")
    (tmp_path / "odd.xyz").write_text("x")
    (tmp_path / "broken.jsonl").write_text('{"text": "a"}\n{"text": \n')
    return tmp_path


def test_inputs_are_counted_and_cut_so_that_each_round_has_a_frame(folder: Path) -> None:
    ready = prepare(spec(), folder)
    (feed,) = ready.feeds
    assert (feed.total, ready.rounds, feed.stream) == (1000, 50, "chaos-1")
    spread = list(feed.rounds(ready.rounds))
    assert [sum(len(each.body) for each in frames) for frames in spread] == [20] * 50


@given(total=st.integers(1, 300), rounds=st.integers(1, 400), size=st.integers(1, 50))
def test_every_frame_is_assigned_once_in_order(
    total: int, rounds: int, size: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    file = tmp_path_factory.getbasetemp() / "spread.txt"
    file.write_text("".join(f"{number}\n" for number in range(total)))
    wanted = Wanted(prepare_schema(), takes_rows=True, messages_max=size, bytes_max=10_000)
    feed = InputFeed("lines", "s", file, Format.LINES, wanted, total)
    spread = list(feed.rounds(rounds))
    assert len(spread) == rounds
    flat = [portion for frames in spread for portion in frames]
    assert [(each.last, each.body) for each in flat] == [
        (each.last, each.body) for each in portions(file, Format.LINES, wanted)
    ]


def prepare_schema() -> object:
    from bettong.edges.application_file import load

    return load(WORDS).sources[0].schema.arrow


@pytest.mark.parametrize(
    ("wrong", "error", "said"),
    [
        (
            spec(inputs=(("words", "lines.txt"),)),
            SettingsError,
            r"inputs\[0\].source: no source 'words'; there are lines",
        ),
        (spec(inputs=(("lines", "gone.txt"),)), SettingsError, r"inputs\[0\].file: .*gone.txt is not a file"),
        (spec(inputs=(("lines", "."),)), SettingsError, "is not a file"),
        (spec(inputs=(("lines", "empty.txt"),)), SettingsError, "empty.txt holds no messages"),
        (spec(inputs=(("lines", "odd.xyz"),)), BettongError, "cannot tell the format"),
        (spec(inputs=(("lines", "broken.jsonl"),)), SchemaError, "broken.jsonl, line 2"),
        (spec(application="gone.py"), ApplicationError, "gone.py"),
        (
            spec(invariants={"outputs": {"sums": {"compare": "messages"}}}),
            SettingsError,
            "invariants.outputs.sums: no such sink; there are counts, dead-letters",
        ),
        (
            spec(workload={"settings": {"frame_bytes_max": "many"}}),
            SettingsError,
            "frame_bytes_max = 'many': expected a number of bytes",
        ),
        (
            spec(
                inputs=(("lines", "lines.txt"), ("lines", "lines.txt")),
                workload={"order": "free"},
                invariants={"outputs": {"counts": {"compare": "bytes"}}},
            ),
            SettingsError,
            "inputs fed concurrently",
        ),
    ],
)
def test_what_is_wrong_is_reported_before_anything_runs(
    folder: Path, wrong: Spec, error: type[BettongError], said: str
) -> None:
    with pytest.raises(error, match=said):
        prepare(wrong, folder)


def test_a_crowd_with_a_row_needs_an_undisturbed_run_and_a_decoder(folder: Path) -> None:
    equals = {"outputs": {"counts": {"compare": "messages", "equals": "lines"}}}
    crowd = {"kind": "crowd", "at_s": [1], "for_s": [2, 2], "streams": 20}
    assert not prepare(spec(nemeses=[crowd], invariants=equals), folder).needs_undisturbed_run
    with_row = crowd | {"row": "!"}
    assert prepare(spec(nemeses=[with_row], invariants=equals), folder).needs_undisturbed_run
    columns = folder / "columns.py"
    columns.write_text(Path(WORDS).read_text().replace(", decoder=bettong.each(read_line)", ""))
    (folder / "lines.jsonl").write_text('{"text": "a"}\n')
    of_columns = spec(application=str(columns), inputs=(("lines", "lines.jsonl"),), nemeses=[with_row])
    with pytest.raises(SettingsError, match=r"nemeses\.row: source 'lines', the first one, has no decoder"):
        prepare(of_columns, folder)


def test_how_encoded_messages_behind_a_key_by_are_told_apart_must_be_said(folder: Path) -> None:
    application = folder / "encoded.py"
    source = Path(WORDS).read_text()
    application.write_text(source.replace('.sink("counts")', '.sink("counts", encoder=lambda count: b"")'))
    with pytest.raises(
        SettingsError, match=r"say in a spec how they are delimited: \[invariants.outputs.counts\]"
    ):
        prepare(spec(application=str(application)), folder)
    said = {"outputs": {"counts": {"compare": "messages", "split": 8}}}
    assert prepare(spec(application=str(application), invariants=said), folder).outputs["counts"].split == 8


def test_two_inputs_cannot_be_one_stream(folder: Path) -> None:
    twice = [{"source": "lines", "file": "lines.txt", "stream": "one"}] * 2
    with pytest.raises(SettingsError, match="two inputs of one source have the same stream name"):
        prepare(spec(workload={"inputs": twice}), folder)


def test_a_golden_output_from_the_input_needs_no_undisturbed_run(folder: Path) -> None:
    equals = {"counts": {"compare": "messages", "equals": "lines"}}
    assert prepare(spec(), folder).needs_undisturbed_run
    assert not prepare(spec(invariants={"outputs": equals}), folder).needs_undisturbed_run


def of_file(file: str, **more: object) -> Spec:
    counts = {"compare": "keys", "key": "word", "expected": file, **more}
    return spec(invariants={"outputs": {"counts": counts}})


def test_a_golden_output_from_a_file_needs_no_undisturbed_run(folder: Path) -> None:
    (folder / "counts.jsonl").write_text('{"word":"a","count":1}\n{"word":"b","count":1}\n')
    ready = prepare(of_file("counts.jsonl"), folder)
    assert not ready.needs_undisturbed_run
    assert ready.golden_from == "the expected files"
    should = golden(ready, SuiteOptions(application=WORDS), folder, say=pytest.fail).outputs
    assert {word: len(found) for word, found in should["counts"].items()} == {"a": 1, "b": 1}
    assert should["dead-letters"] == {}


@pytest.mark.parametrize(
    ("file", "content", "said"),
    [
        ("gone.jsonl", None, "gone.jsonl cannot be compared: No such file"),
        ("broken.jsonl", '{"word":', "Expecting value"),
        ("numbers.jsonl", "1\n", "has no attribute 'get'"),
    ],
)
def test_an_expected_file_that_cannot_be_compared_is_refused_before_anything_runs(
    folder: Path, file: str, content: str | None, said: str
) -> None:
    if content is not None:
        (folder / file).write_text(content)
    with pytest.raises(SettingsError, match=said) as refused:
        prepare(of_file(file), folder)
    assert str(refused.value).startswith(
        f"invariants.outputs.counts.expected: {folder / file} cannot be compared"
    )


def test_what_this_machine_cannot_do_is_left_out_and_reported(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fill = {"kind": "fill", "at_s": [1], "for_s": [1, 1], "disk_mb": 512}
    kill = {"kind": "kill", "targets": ["sender"], "at_s": [2]}
    wanted = spec(nemeses=[fill, kill])
    assert disk_mb(wanted) == 512
    assert disk_mb(spec(nemeses=[kill])) is None
    monkeypatch.setattr(disk, "why_not", lambda: "no root")
    ready = prepare(wanted, folder)
    assert ([fault.kind for fault in ready.faults], ready.not_tried) == (["kill"], {"fill": "no root"})
