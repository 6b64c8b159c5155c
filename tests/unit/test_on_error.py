"""`on_error`: what becomes of a message that a computation cannot process, and that a replay repeats it."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

import pytest
from rich.console import Console

import bettong
from bettong import Application, Width
from bettong.application.on_error import OnError
from bettong.application.plan import plan
from bettong.cli.check import tree
from bettong.errors import ApplicationError, PoisonError
from bettong.frames.refused import REASON_CHARACTERS_MAX
from bettong.worker.partition import PartitionWorker
from bettong.worker.stage_program import StageProgram, program
from tests.samples.worker import data, dead_letters, fold, results, worker


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


OUT = "meters.sink.out"
GOOD, BAD = Number("a", 5), Number("a", 0)


@bettong.compiled
def divide(number: Number, kept: Sum) -> Sum:
    """Counts, then raises for 0."""
    kept.total += 1
    kept.total += 100 // number.value
    return Sum(kept.total)


@bettong.compiled
def divide_well(number: Number, kept: Sum) -> Sum:
    """The same, mended."""
    kept.total += 1
    if number.value != 0:
        kept.total += 100 // number.value
    return Sum(kept.total)


def halved(number: Number) -> Number:
    return Number(number.name, 100 // number.value)


def positive(number: Number) -> bool:
    return 1 / number.value > 0


def twice(number: Number) -> list[Number]:
    return [halved(number), number]


def name_of(number: Number) -> str:
    return f"{100 // number.value}"


def encoded(number: Number) -> bytes:
    return str(100 // number.value).encode()


def fails(text: Text) -> Text:
    raise ValueError(f"line\nline {text.text}")


def wide(number: Number) -> Number:
    """Raises nothing, but what it returns for 0 does not fit."""
    return Number("a" if number.value else "too long a name", 1)


def source(app: Application) -> bettong.Stream[Any]:
    return app.source("in", schema=Number, key="name")


Build = Callable[[Application, Any], object]

BUILDS: dict[str, Build] = {
    "map": lambda app, how: source(app).map(halved, on_error=how).sink("out"),
    "filter": lambda app, how: source(app).filter(positive, on_error=how).sink("out"),
    "flat_map": lambda app, how: source(app).flat_map(twice, on_error=how).sink("out"),
    "key_by": lambda app, how: source(app).key_by(name_of, on_error=how).sink("out"),
    "stateful": lambda app, how: source(app).stateful(divide, state=Sum, on_error=how).sink("out"),
    "sink": lambda app, how: source(app).sink("out", encoder=encoded, on_error=how),
    "schema violation": lambda app, how: source(app).map(wide, on_error=how).sink("out"),
}


def stage(build: str, how: OnError, *, compiled: bool = False) -> StageProgram:
    app = Application("meters")
    BUILDS[build](app, how)
    return program(plan(app).stages[0], compiled=compiled)


@pytest.mark.parametrize("build", BUILDS)
def test_an_unknown_choice_is_refused_with_the_name_of_the_computation(build: str) -> None:
    app = Application("meters")
    kind = "map" if build == "schema violation" else build
    with pytest.raises(ApplicationError, match=rf"^{kind} '.+': on_error='ignore': expected one of 'dead-"):
        BUILDS[build](app, "ignore")


def test_a_source_checks_its_choice_too() -> None:
    with pytest.raises(ApplicationError, match="source 'in': on_error=None: expected one of"):
        Application("meters").source("in", schema=Number, on_error=None)  # type: ignore[arg-type]


@pytest.mark.parametrize("build", BUILDS)
def test_a_skipped_message_is_counted_and_leaves_nothing_else(build: str) -> None:
    of = worker(stage(build, "skip"))
    records = fold(of, [data("in/c", 1, [GOOD, BAD, GOOD])])
    assert dead_letters(records) == []
    assert (of.counters.skipped, of.counters.dead_letters) == (1, 0)
    assert of.counters.results == (4 if build == "flat_map" else 2)


@pytest.mark.parametrize("build", BUILDS)
def test_by_default_it_is_a_dead_letter(build: str) -> None:
    of = worker(stage(build, "dead-letter"))
    assert len(dead_letters(fold(of, [data("in/c", 1, [GOOD, BAD, GOOD])]))) == 1
    assert (of.counters.skipped, of.counters.dead_letters) == (0, 1)


@pytest.mark.parametrize("build", BUILDS)
def test_a_message_that_stops_is_reported_with_all_that_is_needed_to_find_and_mend_it(build: str) -> None:
    of = worker(stage(build, "stop"))
    fold(of, [data("in/c", 1, [GOOD])])
    with pytest.raises(PoisonError) as caught:
        fold(of, [data("in/c", 4, [GOOD, BAD], previous=1)])
    text = str(caught.value)
    assert "stage 'in', partition 0, offset 1, origin in/c, sequence 4, index 1" in text
    assert text.endswith(
        'start the processor again: it goes on with this very message: {"name":"a","value":0}'
    )
    assert ("longer than 4 bytes" if build == "schema violation" else "ZeroDivisionError") in text
    computation = {"key_by": "in-by-name_of", "sink": "out", "stateful": "divide", "schema violation": "wide"}
    assert text.startswith(f"'{computation.get(build, '')}")
    assert '(on_error="stop")' in text


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "python"])
def test_a_fold_that_skips_or_stops_does_so_compiled_as_in_python(*, compiled: bool) -> None:
    of = worker(stage("stateful", "skip", compiled=compiled))
    records = fold(of, [data("in/c", 1, [GOOD, BAD, GOOD])])
    # What the function had changed before it raised stays: 21, then 1 more, then 21 more.
    assert results(records, OUT, Sum) == [Sum(21), Sum(43)]
    assert of.counters.skipped == 1
    with pytest.raises(PoisonError, match=r"'divide' .+: ZeroDivisionError.+ index 1"):
        fold(worker(stage("stateful", "stop", compiled=compiled)), [data("in/c", 1, [GOOD, BAD])])


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "python"])
def test_after_the_code_is_mended_the_fold_goes_on_with_that_very_record(*, compiled: bool) -> None:
    log = [data("in/c", number, [GOOD]) for number in (1, 2)]
    log += [data("in/c", 3, [GOOD, BAD]), data("in/c", 4, [GOOD])]
    broken = worker(stage("stateful", "stop", compiled=compiled))
    before = fold(broken, log[:2])
    kept = broken.snapshot()
    with pytest.raises(PoisonError, match="offset 2"):
        broken.fold(2, log[2])

    app = Application("meters")
    source(app).stateful(divide_well, state=Sum, name="divide", on_error="stop").sink("out")
    mended = program(plan(app).stages[0], compiled=compiled)
    goes_on = worker(mended)
    goes_on.restore(kept)
    assert before + fold(goes_on, log[2:]) == fold(straight := worker(mended), log)
    assert goes_on.snapshot() == straight.snapshot()


def test_what_was_skipped_is_part_of_the_snapshot_so_that_a_replay_counts_nothing_twice() -> None:
    of = stage("map", "skip")
    first = worker(of)
    log = [data("in/c", 1, [GOOD, BAD]), data("in/c", 2, [BAD])]
    first.fold(0, log[0])
    again = worker(of)
    again.restore(first.snapshot())
    again.fold(1, log[1])
    first.fold(1, log[1])
    assert again.snapshot() == first.snapshot()
    assert again.counters.skipped == 2


def test_each_computation_of_a_stage_has_its_own_choice() -> None:
    app = Application("meters")
    numbers = source(app)
    numbers.map(halved, on_error="skip").sink("out")
    numbers.filter(positive).sink("out-2")
    of: PartitionWorker = worker(program(plan(app).stages[0], compiled=False))
    records = fold(of, [data("in/c", 1, [BAD])])
    assert [dead_letter.computation for dead_letter in dead_letters(records)] == ["positive"]
    assert (of.counters.skipped, of.counters.dead_letters) == (1, 1)


def test_a_reason_of_many_lines_and_a_long_message_are_reported_in_one_short_line() -> None:
    app = Application("meters")
    app.source("in", schema=Text).map(fails, on_error="stop").sink("out")
    with pytest.raises(PoisonError) as caught:
        fold(worker(program(plan(app).stages[0], compiled=False)), [data("in/c", 1, [Text("x" * 50_000)])])
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) < 2 * REASON_CHARACTERS_MAX


def test_a_record_that_is_no_frame_is_a_dead_letter_whatever_the_computations_say() -> None:
    of = worker(stage("map", "stop"))
    (dead_letter,) = dead_letters(fold(of, [b"garbage"]))
    assert dead_letter.computation == "in"
    assert of.counters.dead_letters == 1


def test_the_graph_shows_every_choice_but_the_usual_one() -> None:
    app = Application("meters")
    numbers = app.source("in", schema=Number, key="name", on_error="stop")
    numbers.map(halved, on_error="skip").sink("out", on_error="stop")
    numbers.filter(positive).key_by("value", name="by-value", on_error="skip").sink("values")
    text = io.StringIO()
    Console(width=200, file=text).print(tree(plan(app)))
    shown = {line.split(":")[0].split()[-1]: line for line in text.getvalue().splitlines() if ":" in line}
    assert "on error stop" in shown["in"]
    assert "on error skip" in shown["halved"]
    assert "on error stop" in shown["out"]
    assert "on error" not in shown["positive"]
    assert "to stage by-value: positive, by key value, on error skip" in text.getvalue()


def quotes(text: Text) -> Text:
    """Raises what no file name, and no UTF-8, can hold."""
    raise ValueError(f"no file {text.text}\udc80" + "\udcff" * 2 * REASON_CHARACTERS_MAX)


def ill_fitting(text: Text) -> Text:
    """Raises nothing, but what it returns is no text that can be stored."""
    return Text(text.text + "\udc80")


def of_text(function: Callable[[Text], Text], how: OnError) -> PartitionWorker:
    app = Application("meters")
    app.source("in", schema=Text).map(function, on_error=how).sink("out")
    return worker(program(plan(app).stages[0], compiled=False))


@pytest.mark.parametrize("function", [quotes, ill_fitting])
def test_a_reason_that_is_no_unicode_text_is_escaped_and_cut(function: Callable[[Text], Text]) -> None:
    record = data("in/c", 1, [Text("a")])
    (dead_letter,) = dead_letters(fold(of_text(function, "dead-letter"), [record]))
    assert "\\udc80" in dead_letter.reason
    assert len(dead_letter.reason) <= REASON_CHARACTERS_MAX
    with pytest.raises(PoisonError) as caught:
        fold(of_text(function, "stop"), [record])
    assert b"\\udc80" in str(caught.value).encode()
