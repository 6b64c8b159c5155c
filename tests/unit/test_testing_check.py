"""`bettong.testing.check`: finds functions that depend on frames, partitions or crashes, and the smallest case."""

from __future__ import annotations

import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from hypothesis import strategies as st

from bettong import Application
from bettong.testing import (
    CRASH,
    IDLE,
    AtEachRecord,
    CaseError,
    CheckError,
    cases,
    check,
    clock,
    frame,
    run,
    watermark,
)
from bettong.testing.inputs import ClientFrame, Moment, Step
from bettong.testing.pasted_test import case_test
from bettong.testing.smallest import smallest
from bettong.testing.variations import PARTITIONS, Variation, one_message_a_frame, variations
from tests.samples import clicks
from tests.samples.clicks import MINUTE_NS, Click

ROOT = Path(__file__).resolve().parents[2]
USERS = "abcdefgh"


def many(number: int = 12) -> list[Any]:
    return [
        ("clicks", Click(USERS[each % 5], f"p{each % 2}", each * MINUTE_NS // 3)) for each in range(number)
    ]


PLANTED = {
    "frames": (clicks.frames_app, many(), "how messages are divided into frames", 3),
    "neighbours": (clicks.neighbours_app, many(), "how messages are divided into frames", 2),
    "partitions": (clicks.partitions_app, many(40), "the number of partitions, and frames", 3),
    "crashes": (clicks.crashes_app, many(), "crashes and restarts", 2),
    "saves": (clicks.saves_app, many(), "crashes and restarts", 3),
    "repetitions": (clicks.repetitions_app, [("lines", b"%d" % each) for each in range(8)], "repetitions", 1),
    "speeds": (
        clicks.speeds_app,
        [("clicks", Click("a", at=2**40 + each)) for each in range(6)],
        "compiled",
        1,
    ),
}


@pytest.mark.parametrize(
    ("app", "case"),
    [
        (clicks.counting_app, [*many(), CRASH, ("clicks", Click("")), clock(5)]),
        (clicks.pages_app, many()),
        (clicks.hours_app, [*many(20), ("clicks", Click("a", "p0", 3)), watermark(2**50)]),
        (clicks.compiled_app, many()),
        (clicks.visits_app, [*many(20), ("clicks", Click("a", "p0", 3)), watermark(2**50)]),
    ],
    ids=["counting", "pages", "hours", "compiled", "visits"],
)
def test_an_application_that_is_right_passes(app: Application, case: list[Any]) -> None:
    check(app, case)


def test_how_often_windows_forgot_a_key_is_no_difference() -> None:
    """A key without an open window is forgotten behind a frame: not where the frame opens another one."""
    visits = [Click("a", page, hours * 60 * MINUTE_NS) for hours, page in ((0, "p0"), (2, "p1"), (4, "p0"))]
    check(clicks.hours_app, [("clicks", visit) for visit in visits])


def test_a_message_that_is_late_behind_a_key_by_is_said_to_depend_on_the_order_of_partitions() -> None:
    case = [("clicks", Click("a", "p0", 2**50)), ("clicks", Click("b", "p1", 3))]
    with pytest.raises(CheckError, match="give the source an out_of_order=, or the window a delay="):
        check(clicks.hours_by_page_app, case)
    check(clicks.hours_by_page_app, list(reversed(case)))
    with pytest.raises(CheckError) as caught:
        check(clicks.partitions_app, many())
    assert "out_of_order=" not in str(caught.value)


@cache
def found(kind: str) -> CheckError:
    app, case, _, _ = PLANTED[kind]
    with pytest.raises(CheckError) as caught:
        check(app, case)
    return caught.value


@pytest.mark.parametrize("kind", PLANTED)
def test_a_planted_mistake_is_found_shrunk_and_shown_as_a_test(kind: str) -> None:
    _, _, what, messages_max = PLANTED[kind]
    text, test = str(found(kind)), found(kind).test
    assert text.startswith(f"results depend on {what}") or what in text.splitlines()[0], text
    assert text.endswith(test)
    assert messages_in(test) <= messages_max, test
    assert "from tests.samples.clicks import" in test


def test_what_is_shown_of_a_planted_mistake_is_a_test_that_fails(tmp_path: Path) -> None:
    """All in one run of pytest: a start takes longer than the tests."""
    for kind in PLANTED:
        (tmp_path / f"test_{kind}.py").write_text(found(kind).test)
    command = [sys.executable, "-m", "pytest", "-q", "--tb=line", "-p", "no:cacheprovider", "-p", "no:xdist"]
    done = subprocess.run(
        [*command, str(tmp_path)], capture_output=True, text=True, check=False, cwd=ROOT, timeout=240
    )
    assert done.returncode == 1, done.stdout + done.stderr
    assert {*re.findall(r"^FAILED .*/test_(\w+)\.py::", done.stdout, re.MULTILINE)} == PLANTED.keys(), (
        done.stdout
    )
    reasons = re.findall(r"^\S+:\d+: (?:\w+\.)*(\w+)", done.stdout, re.MULTILINE)
    assert len(reasons) == len(PLANTED), done.stdout
    assert {*reasons} <= {"AssertionError", "ReplayError"}, done.stdout


def test_a_long_case_is_shrunk_in_few_runs() -> None:
    case = [frame("clicks", Click("a", at=at)) for at in range(1000)]
    needed, runs = [41, 500, 501, 998], 0

    def fails(part: Sequence[Step], variation: Variation) -> bool:
        nonlocal runs
        runs += 1
        times = [each.messages[0].at for each in part if isinstance(each, ClientFrame)]
        # One of them is in the frame of the one before it.
        joined = dict(zip(times, variation.joined, strict=True))
        return {*needed} <= {*times} and joined[501]

    found, variation = smallest(case, Variation("frames", joined=(True,) * len(case)), fails)
    assert found == [case[at] for at in needed]
    assert variation.joined == (False, False, True, False)
    assert runs < 300


def messages_in(test: str) -> int:
    """Of the first of the two runs."""
    first = test.partition("found = ")[0]
    return len(re.findall(r"Click\(|, b'", first))


def test_a_strategy_is_tried_and_its_values_are_shrunk() -> None:
    message = st.builds(Click, st.sampled_from(USERS), st.just("p"), st.integers(0, 10**6))
    case = st.lists(message.map(lambda each: ("clicks", each)), max_size=6)
    check(clicks.counting_app, case, examples=5)
    with pytest.raises(CheckError) as caught:
        check(clicks.neighbours_app, case)
    assert messages_in(caught.value.test) == 2
    assert {"at=0", "at=1"} == {
        part.rstrip(")],\n") for part in caught.value.test.split() if part.startswith("at=")
    }


def test_cases_are_drawn_from_the_schemas_of_sources() -> None:
    for app in (clicks.counting_app, clicks.pages_app, clicks.hours_app):
        check(app, cases(app), examples=2)
    with pytest.raises(CheckError) as caught:
        check(clicks.neighbours_app, cases(clicks.neighbours_app))
    assert messages_in(caught.value.test) == 2
    check(clicks.neighbours_app, cases(clicks.neighbours_app, fields={"at": st.just(5)}), examples=2)


def test_a_function_that_gives_something_else_each_time_is_found() -> None:
    app = Application("chance")
    numbers = iter(range(10**6))

    def drawn(click: Click) -> clicks.Total:
        return clicks.Total(click.user, next(numbers))

    app.source("clicks", schema=Click, key="user").map(drawn).sink("out")
    with pytest.raises(CheckError, match="depend on which run it is"):
        check(app, many())


def test_without_hypothesis_check_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "hypothesis", None)
    for call in (lambda: check(clicks.counting_app, many(2)), lambda: cases(clicks.counting_app)):
        with pytest.raises(CaseError, match=r"pip install 'bettong\[testing\]'"):
            call()
    assert run(clicks.counting_app, many(2)).outputs["counts"]


def test_a_case_that_makes_no_sense_is_refused_before_anything_runs() -> None:
    with pytest.raises(CaseError, match="input 1: unknown source"):
        check(clicks.counting_app, [("clicks", Click("a")), ("clock", Click("a"))])


def test_every_kind_of_variation_is_tried() -> None:
    steps = one_message_a_frame([ClientFrame("clicks", tuple(each for _, each in many(6))), CRASH])
    assert len(steps) == 7
    found = list(variations(steps, has_compiled=True))
    assert {each.partitions for each in found} == {1, *PARTITIONS}
    assert {each.at_each_record for each in found} == {None, *AtEachRecord}
    assert {moment for each in found for moment in each.between} == {*Moment} - {IDLE}
    sizes = [
        [len(step.messages) for step in each.inputs(steps) if isinstance(step, ClientFrame)] for each in found
    ]
    assert [6] in sizes
    assert [1] * 6 in sizes
    assert any(1 < len(each) < 6 for each in sizes)
    assert not any(each.compiled for each in variations(steps, has_compiled=False))


def test_frames_of_two_clients_are_never_put_together() -> None:
    steps: list[Step] = [
        frame("clicks", Click("a")),
        frame("clicks", Click("b"), client="x"),
        clock(5),
        frame("clicks", Click("c")),
    ]
    for each in variations(steps, has_compiled=False):
        frames = [step for step in each.inputs(steps) if isinstance(step, ClientFrame)]
        assert [len(one.messages) for one in frames] == [1, 1, 1]


def test_a_case_as_a_test_runs() -> None:
    case: list[Step] = [frame("clicks", Click("a"), Click("b"), client="x"), clock(5), CRASH]
    text = case_test(clicks.counting_app, case)
    module = ModuleType("pasted")
    exec(text, module.__dict__)  # noqa: S102 - that is what it is for
    with pytest.raises(AssertionError):
        module.test_recorded_case()
    exec(text.replace("== []", "!= []"), module.__dict__)  # noqa: S102
    module.test_recorded_case()
