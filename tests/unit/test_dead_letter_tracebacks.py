"""Dead letters say where in the user's code a message failed; the log of a process says it once."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any

import pytest
from structlog.testing import capture_logs

import bettong
from bettong import Application, Width, each
from bettong.application.on_error import OnError
from bettong.application.plan import plan
from bettong.edges.application_file import load
from bettong.errors import PoisonError
from bettong.failure_sites import SITES_MAX, FailureSites
from bettong.frames.refused import NO_ROOM, Refused, pack, unpack
from bettong.ingest.body import assign, read_body
from bettong.ingest.event_times import judge_event_times
from bettong.testing import run
from bettong.testing.outcome import assert_alike
from bettong.user_errors import Reason, traceback_of
from bettong.v1.frame_pb2 import Rows
from bettong.v1.ingest_pb2 import IngestFrame
from bettong.worker.stage_program import program
from tests.samples.worker import data, dead_letters, fold, python, worker
from tests.simulation.crash_guards import guard

HERE = "tests/unit/test_dead_letter_tracebacks.py"


@dataclass(slots=True)
class Number:
    name: Annotated[str, Width(4)]
    value: bettong.i32


@dataclass(slots=True)
class Sum:
    total: bettong.i64 = 0


@dataclass
class Text:
    text: str


GOOD, BAD = Number("a", 5), Number("a", 0)


def share(value: int) -> int:
    return 100 // value


def shared(number: Number) -> Number:
    return Number(number.name, share(number.value))


def add(number: Number, kept: Sum) -> Sum:
    kept.total += share(number.value)
    return Sum(kept.total)


@bettong.compiled
def add_compiled(number: Number, kept: Sum) -> Sum:
    kept.total += 100 // number.value
    return Sum(kept.total)


def share_text(number: Number) -> str:
    return str(share(number.value))


def encoded(number: Number) -> bytes:
    return share_text(number).encode()


def strange(number: Number) -> Number:
    return number.value  # type: ignore[return-value]


def line_of(function: Callable[..., Any], after: int = 1) -> str:
    name = function.__name__
    return f"{HERE}:{function.__code__.co_firstlineno + after} in {name}"


Build = Callable[[Any, OnError], object]
BUILDS: dict[str, tuple[Build, list[str]]] = {
    "map": (
        lambda stream, how: stream.map(shared, on_error=how).sink("out"),
        [line_of(shared), line_of(share)],
    ),
    "stateful": (
        lambda stream, how: stream.stateful(add, state=Sum, on_error=how).sink("out"),
        [line_of(add), line_of(share)],
    ),
    "key_by": (
        lambda stream, how: stream.key_by(share_text, on_error=how).sink("out"),
        [line_of(share_text), line_of(share)],
    ),
    "sink": (
        lambda stream, how: stream.sink("out", encoder=encoded, on_error=how),
        [line_of(encoded), line_of(share_text), line_of(share)],
    ),
}


def application(build: Build, how: OnError = "dead-letter") -> Application:
    app = Application("meters")
    build(app.source("in", schema=Number, key="name"), how)
    return app


@pytest.mark.parametrize("name", BUILDS)
def test_a_dead_letter_has_the_lines_of_the_users_functions(name: str) -> None:
    build, lines = BUILDS[name]
    stage = program(plan(application(build)).stages[0], compiled=False)
    records = fold(worker(stage), [data("in/c", 1, [GOOD, BAD])])
    (dead_letter,) = dead_letters(records)
    assert list(dead_letter.traceback) == lines
    assert dead_letter.reason.startswith("ZeroDivisionError")


def test_what_no_function_raised_has_no_lines() -> None:
    app = application(lambda stream, _: stream.map(strange).sink("out"))
    (dead_letter,) = dead_letters(fold(worker(python(app)), [data("in/c", 1, [GOOD])]))
    assert (dead_letter.reason, list(dead_letter.traceback)) == ("int is no Number", [])


def test_a_compiled_function_has_no_lines_of_bettongs_and_compares_alike() -> None:
    app = application(lambda stream, _: stream.stateful(add_compiled, state=Sum).sink("out"))
    (stage,) = plan(app).stages
    (dead_letter,) = dead_letters(fold(worker(program(stage, compiled=True)), [data("in/c", 1, [GOOD, BAD])]))
    assert dead_letter.reason.startswith("ZeroDivisionError")
    assert all(line.startswith(f"{HERE}:") for line in dead_letter.traceback)
    case = [("in", GOOD), ("in", BAD)]
    assert_alike(run(app, case, compiled=True), run(app, case, compiled=False))


APPLICATION = """
from dataclasses import dataclass
import bettong
from {helper} import share

@dataclass
class Number:
    name: str
    value: int

def shared(number: Number) -> Number:
    return Number(number.name, share(number.value))

app = bettong.Application("meters")
app.source("in", schema=Number, key="name").map(shared).sink("out")
"""


def test_a_replay_from_another_folder_writes_the_same_bytes(tmp_path: Path) -> None:
    """As on another machine: by the same code, wherever it lies, after other errors and at another depth of calls."""
    found = []
    for depth, folder in enumerate((tmp_path / "one", tmp_path / "another" / "and deeper")):
        folder.mkdir(parents=True)
        (folder / "shares_of_it.py").write_text("def share(value):\n    return 100 // value\n")
        (folder / "shop.py").write_text(APPLICATION.format(helper="shares_of_it"))
        app = load(str(folder / "shop.py"))
        del sys.modules["shares_of_it"]
        number = app.sources[0].schema.made_class
        frames = [data("in/c", sequence, [number("a", sequence % 2)]) for sequence in range(1, 7)]
        of = worker(python(app))
        found.append(deeper(10 * depth, lambda of=of, frames=frames: fold(of, frames)))  # type: ignore[misc]
    assert found[0] == found[1]
    assert list(dead_letters(found[0])[0].traceback) == ["shop.py:12 in shared", "shares_of_it.py:2 in share"]


def deeper(levels: int, call: Callable[[], Any]) -> Any:
    return deeper(levels - 1, call) if levels else call()


def test_the_largest_dead_letter_still_fits_the_smallest_frame() -> None:
    least = 16_384

    def fails(text: Text) -> Text:
        raise ValueError("\U0001f600" * 2000)

    scope: dict[str, Any] = {"__name__": "of." + "\U0001f600" * 100, "fails": fails}
    source = "".join(f"def f{number}(x):\n    return f{number + 1}(x)\n" for number in range(8))
    exec(compile(source + "f8 = fails", "of/" + "\U0001f600" * 100 + ".py", "exec"), scope)  # noqa: S102

    def first(text: Text) -> Text:
        found: Text = scope["f0"](text)
        return found

    app = Application("meters")
    text = app.source("in", schema=Text)
    text.map(first, name="n" * 60).sink("out")
    of = worker(python(app), frame_bytes_max=least)
    records = fold(of, [data("in/" + "c" * 200, 1, [Text("x" * 15_000)])])
    (dead_letter,) = dead_letters(records)
    assert len(dead_letter.traceback) == 8
    assert all(len(record.value) <= least for record in records)
    assert dead_letter.truncated


# In the sender.


def test_a_decoder_a_key_and_an_event_time_function_have_lines_too() -> None:
    def decoded(row: bytes) -> Number:
        return Number("a", share(len(row)))

    def key(number: Number) -> str:
        return str(share(number.value - 100))

    def time(number: Number) -> int:
        return share(number.value - 50)

    app = Application("meters")
    source = app.source("in", schema=Number, key=key, decoder=each(decoded), event_time=time)
    source.sink("out")
    (node,) = app.sources
    body = read_body(node, IngestFrame(rows=Rows(messages=[b"", b"x", b"xx"])))
    timed = judge_event_times(node, body, now_ns=10)
    refused = [*body.refused, *timed.wrong, *assign(node, body, 4)[0].refused]
    assert [(each.reason.partition("Error")[0], traceback_of(each.reason)[-1]) for each in refused[:3]] == [
        ("ZeroDivision", line_of(share)),
        ("the event_time function raised ZeroDivision", line_of(share)),
        ("ZeroDivision", line_of(share)),
    ]
    assert refused[3].reason.startswith("the key function raised ZeroDivision")
    assert traceback_of(refused[3].reason)[-1] == line_of(share)


LINES = tuple(f"shop.py:{number} in parse" for number in range(8))


def packed_with(count: int, *, room: int) -> list[Refused]:
    refused = [
        Refused(index, Reason(f"ValueError: {index:020}", LINES), b"m", as_received=True)
        for index in range(count)
    ]
    return list(unpack(pack(refused, frame_bytes_max=room)))


def test_lines_travel_beside_refused_messages() -> None:
    assert {traceback_of(each.reason) for each in packed_with(3, room=1 << 20)} == {LINES}


def test_of_very_many_refused_messages_the_innermost_line_travels() -> None:
    assert {traceback_of(each.reason) for each in packed_with(1001, room=1 << 22)} == {LINES[-1:]}


def test_lines_have_no_room_before_reasons_have_none() -> None:
    found = [
        (each.reason != NO_ROOM, bool(traceback_of(each.reason))) for each in packed_with(200, room=16_450)
    ]
    assert found[0] == (True, True)
    assert found[-1] == (False, False)
    assert (True, False) in found
    assert sorted(found, reverse=True) == found


# In the log.


@pytest.fixture
def logged() -> Iterator[list[Any]]:
    with capture_logs() as found:
        yield found


def test_a_processor_says_each_place_once(tmp_path: Path, logged: list[Any]) -> None:
    build, lines = BUILDS["map"]
    of = worker(python(application(build)))
    guarded = guard(tmp_path).of(of)
    for sequence in range(1, 5):
        guarded(sequence - 1, data("in/c", sequence, [GOOD, BAD, BAD]))
    (said,) = logged
    assert said["event"] == "messages fail in a user's function"
    assert (said["stage"], said["partition"], said["computation"]) == ("in", 0, "shared")
    assert (list(said["traceback"]), said["log_level"]) == (lines, "warning")
    assert said["reason"].startswith("ZeroDivisionError")


def test_what_stops_a_partition_is_said_too(tmp_path: Path, logged: list[Any]) -> None:
    build, lines = BUILDS["map"]
    guarded = guard(tmp_path).of(worker(python(application(build, "stop"))))
    with pytest.raises(PoisonError):
        guarded(0, data("in/c", 1, [GOOD, BAD]))
    assert [list(each["traceback"]) for each in logged] == [lines]


def test_places_are_bounded_and_each_is_taken_once() -> None:
    places = FailureSites()
    for number in range(3 * SITES_MAX):
        places.note("check", "ValueError: no", (f"shop.py:{number} in check",))
    assert len(places.take_new()) == SITES_MAX
    places.note("another", "ValueError: no", ("shop.py:1 in check",))
    assert places.take_new() == []
