"""Compiled functions behave as in Python: the same values in, the same results out.

One kernel, compiled once, that does all that the rules of meaning are about; `judge` is also called as it is.
"""

from __future__ import annotations

import math
import resource
from dataclasses import dataclass, replace
from typing import Annotated, Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bettong
from bettong import Application, ApplicationError, Width
from bettong.application.plan import plan
from bettong.frames.frame import decode, encode
from bettong.identifiers import SequenceNumber
from bettong.testing import run
from bettong.worker.stage_program import StageProgram, program
from tests.samples.worker import Kept, Reading, Total, data, dead_letters, fold, results, worker

LIMIT = 7
HOME = "home"


@dataclass
class Sample:
    name: Annotated[str, Width(6)]
    small: bettong.u8
    signed: bettong.i16
    large: bettong.u64
    single: bettong.f32
    double: bettong.f64
    flag: bool
    raw: Annotated[bytes, Width(3)]


@dataclass
class State:
    narrow: bettong.u8 = 5
    single: bettong.f32 = 0.5
    seen: bool = False
    last: Annotated[str, Width(6)] = "none"


@dataclass
class Outcome:
    name: Annotated[str, Width(6)]
    difference: bettong.i64
    next_large: bettong.u64
    ratio: bettong.f64
    third: bettong.f32
    flag: bool
    raw: Annotated[bytes, Width(3)]
    narrow: bettong.i8
    tag: Annotated[str, Width(4)] = "std"
    weight: int = 1


def bounded(value: int, limit: int = LIMIT) -> int:
    """A function that the compiled one calls, with a default and a constant of the module."""
    return min(value, limit)


@bettong.compiled
def judge(sample: Sample, state: State) -> Outcome | None:
    state.narrow += sample.small
    state.single += sample.single
    first = not state.seen
    state.seen = True
    if sample.name == "skip":
        return None
    if sample.name in ("raise", HOME):
        raise ValueError("not this name")
    before = state.last
    state.last = sample.name
    if before == sample.name:
        return Outcome(
            sample.name, sample.small - 10, sample.large + 1, 0.1 + state.single, sample.single / 3, True,  # noqa: FBT003
            sample.raw, state.narrow - 100, "same", weight=bounded(sample.signed),
        )  # fmt: skip
    return Outcome(
        name=sample.name,
        difference=sample.small - sample.signed,
        next_large=sample.large,
        ratio=sample.double / sample.signed,
        third=sample.single * sample.single,
        flag=first and sample.flag,
        raw=sample.raw,
        narrow=sample.signed,
    )


SAMPLE = st.builds(
    Sample,
    name=st.sampled_from(["a", "b", "äöü", "skip", "raise", "home", "", "sixsix"]),
    small=st.integers(0, 255),
    signed=st.integers(-200, 200),
    large=st.integers(0, 2**63 - 2),
    single=st.floats(width=32, min_value=-(2.0**70), max_value=2.0**70),  # squared, not always an f32
    double=st.floats(allow_nan=False, allow_infinity=False),
    flag=st.booleans(),
    raw=st.binary(min_size=3, max_size=3),
)


def application() -> Application:
    app = Application("meters")
    app.source("in", schema=Sample, key="name").stateful(judge, state=State).sink("out")
    return app


@pytest.fixture(scope="module")
def judges() -> dict[str, StageProgram]:
    (stage,) = plan(application()).stages
    return {kind: program(stage, compiled=kind == "compiled") for kind in ("python", "compiled")}


def outcomes(of: StageProgram, samples: list[Sample]) -> tuple[list[str], list[tuple[int, str]]]:
    """Results (as text, so that NaN equals NaN) and dead letters: index and computation."""
    records = fold(worker(of), [data("in/a", 1, samples)])
    found = [repr(each) for each in results(records, "meters.sink.out", Outcome)]
    return found, sorted((each.index, each.computation) for each in dead_letters(records))


@settings(max_examples=150)
@given(st.lists(SAMPLE, min_size=1, max_size=8))
def check_alike(judges: dict[str, StageProgram], samples: list[Sample]) -> None:
    assert outcomes(judges["compiled"], samples) == outcomes(judges["python"], samples)


def test_compiled_and_python_give_the_same_results_and_dead_letters(judges: dict[str, StageProgram]) -> None:
    check_alike(judges)


def sample(name: str, **changes: Any) -> Sample:
    values: dict[str, Any] = {
        "small": 1,
        "signed": 2,
        "large": 3,
        "single": 0.1,
        "double": 4.0,
        "flag": True,
        "raw": b"abc",
    }
    return Sample(name, **(values | changes))


def one(of: StageProgram, *samples: Sample) -> Outcome:
    records = fold(worker(of), [data("in/a", 1, samples)])
    found: list[Outcome] = results(records, "meters.sink.out", Outcome)
    return found[-1]


@pytest.mark.parametrize("kind", ["python", "compiled"])
def test_narrow_fields_take_part_in_arithmetic_as_whole_numbers(
    judges: dict[str, StageProgram], kind: str
) -> None:
    found = one(judges[kind], sample("a"), sample("a", small=3, large=2**62))
    assert (found.difference, found.next_large, found.narrow) == (-7, 2**62 + 1, -91)
    assert (found.tag, found.weight) == ("same", 2)
    narrow = 0.10000000149011612
    assert found.ratio == 0.1 + (0.5 + narrow + narrow)


@pytest.mark.parametrize("kind", ["python", "compiled"])
def test_large_unsigned_numbers_pass_through(judges: dict[str, StageProgram], kind: str) -> None:
    assert one(judges[kind], sample("a", large=2**64 - 1)).next_large == 2**64 - 1


@pytest.mark.parametrize("kind", ["python", "compiled"])
def test_what_is_raised_is_reported_in_the_users_own_words(
    judges: dict[str, StageProgram], kind: str
) -> None:
    records = fold(worker(judges[kind]), [data("in/a", 1, [sample("a"), sample("raise"), sample("a")])])
    (dead_letter,) = dead_letters(records)
    assert (dead_letter.index, dead_letter.reason) == (1, "ValueError: not this name")
    assert len(results(records, "meters.sink.out", Outcome)) == 2


@pytest.mark.parametrize("kind", ["python", "compiled"])
def test_a_division_by_zero_is_the_dead_letter_of_that_message_alone(
    judges: dict[str, StageProgram], kind: str
) -> None:
    samples = [sample("a"), sample("b", signed=0), sample("äöü"), sample("sixsix", signed=0)]
    records = fold(worker(judges[kind]), [data("in/a", 1, samples)])
    found = dead_letters(records)
    assert [each.index for each in found] == [1, 3]
    assert all(each.reason.startswith("ZeroDivisionError: ") for each in found)
    assert [each.name for each in results(records, "meters.sink.out", Outcome)] == ["a", "äöü"]


@pytest.mark.parametrize("kind", ["python", "compiled"])
def test_a_result_that_does_not_fit_its_field_is_a_dead_letter(
    judges: dict[str, StageProgram], kind: str
) -> None:
    records = fold(worker(judges[kind]), [data("in/a", 1, [sample("a", signed=300), sample("b")])])
    (dead_letter,) = dead_letters(records)
    assert dead_letter.index == 0
    assert "field 'narrow'" in dead_letter.reason
    assert [each.name for each in results(records, "meters.sink.out", Outcome)] == ["b"]


def test_infinities_and_nan_pass_through_compiled_code(judges: dict[str, StageProgram]) -> None:
    assert one(judges["compiled"], sample("a", double=math.inf)).ratio == math.inf
    assert math.isnan(one(judges["compiled"], sample("a", double=math.nan)).ratio)


def test_exceptions_lose_no_memory(judges: dict[str, StageProgram]) -> None:
    """Numba releases nothing that a function holds when it raises; a frame must not be among that."""
    samples = [sample(f"n{number}", small=0, single=0.0) for number in range(2000)]
    samples[1000] = sample("raise")
    frame = decode(data("in/a", 1, samples, previous=0))
    of = worker(judges["compiled"])

    def folds(times: int) -> int:
        for _ in range(times):
            of.fold(of.next_offset, encode(replace(frame, sequence=SequenceNumber(of.next_offset + 1))))
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024

    before = folds(50)
    assert folds(300) - before < 100 * len(encode(frame))
    assert of.counters.dead_letters == 350


def test_all_keys_have_a_state_however_many_come_at_once(tally_programs: dict[str, StageProgram]) -> None:
    of = worker(tally_programs["compiled"])
    readings = [Reading(f"{number:06}", number % 200) for number in range(5000)]
    records = fold(of, [data("readings/a", 1, readings), data("readings/a", 2, readings[::-1])])
    assert of.keys == 5000
    totals = [each.total for each in results(records, "meters.sink.totals", Total)]
    assert totals[:5000] == [each.value for each in readings]


@dataclass
class Loose:
    text: str


@dataclass
class LooseState:
    items: str = ""


@dataclass
class ListState:
    items: list[int]


def refused(app: Application) -> str:
    (stage,) = plan(app).stages
    with pytest.raises(ApplicationError) as caught:
        program(stage, compiled=True)
    return str(caught.value)


def marked(schema: type[Any], state: Any, key: Any = "name", returns: Any = Outcome) -> Application:
    def function(message, kept):  # type: ignore[no-untyped-def]  # noqa: ANN001, ANN202
        return None

    function.__annotations__["return"] = returns
    app = Application("meters")
    app.source("in", schema=schema, key=key).stateful(bettong.compiled(function), state=state, name="f").sink(
        "out"
    )
    return app


@pytest.mark.parametrize(
    ("app", "text"),
    [
        (marked(Sample, LooseState), "compiled 'f': LooseState: items has no fixed width"),
        (marked(Sample, ListState), "compiled 'f': ListState: items (list): it has no bound; use Annotated"),
        (marked(Sample, dict), "compiled 'f': state=dict: expected a dataclass; keep it in a field of one"),
        (marked(Sample, lambda: Kept()), "state=<lambda>: expected a dataclass"),  # noqa: PLW0108 - a function is the point
        (marked(Loose, State, key="text"), "compiled 'f': key 'text' of 'in' has no fixed width"),
        (marked(Sample, State, returns=Loose), "compiled 'f': Loose: text has no fixed width"),
        (marked(Sample, State, returns=list[Outcome]), "cannot be compiled: Invalid use of getiter with"),
        (
            marked(Sample, State, key=lambda message: message.name),
            "the key of 'in' is a function; key by fields",
        ),
    ],
)
def test_what_cannot_be_compiled_is_refused_by_the_name_of_the_computation(
    app: Application, text: str
) -> None:
    assert text in refused(app)


def test_keys_of_merged_streams_must_be_of_one_type() -> None:
    @dataclass
    class Other:
        name: Annotated[str, Width(8)]

    def of_sample(sample: Sample, state: State) -> Outcome | None:
        return None

    def of_other(other: Other, state: State) -> None:
        return None

    of_other.__annotations__.update(other=Other)
    app = Application("meters")
    one, two = app.source("one", schema=Sample, key="name"), app.source("two", schema=Other, key="name")
    handlers: dict[Any, Any] = {one: bettong.compiled(of_sample), two: bettong.compiled(of_other)}
    one.merge(two).stateful(handlers, state=State, name="both").sink("out")
    assert "compiled 'both': its streams' keys differ in type: one (text, |S6), two (text, |S8)" in refused(
        app
    )


def test_only_plain_functions_can_be_marked() -> None:
    with pytest.raises(ApplicationError, match=r"@bettong\.compiled: .* is no plain function"):
        bettong.compiled(print)


@dataclass
class Number:
    value: int


def one_more(value: int) -> int:
    return value + 1


def ten_times(value: int) -> int:
    return value * 10


@pytest.mark.filterwarnings("ignore::numba.NumbaExperimentalFeatureWarning")
def test_a_function_that_is_chosen_for_each_message_is_called() -> None:
    """By its address, which compiled code alone knows: see `compiled_later`."""

    def calculated(number: Number) -> Number:
        function = one_more if number.value > LIMIT else ten_times
        return Number(function(number.value))

    app = Application("meters")
    app.source("in", schema=Number, key="value").map(bettong.compiled(calculated)).sink("out")
    found = run(app, [("in", [Number(3), Number(8)])], compiled=True)
    assert found.outputs["out"] == [Number(30), Number(9)]
