"""`local` gives what `key_by` gives, to the last result: whatever the frames, partitions, lateness and aggregation."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import bettong
from bettong import Application
from bettong.application.windows.kinds import Ranges, WindowKind
from bettong.testing import CRASH, END, RESTORE, AppSession, check, frame, run
from bettong.testing.outcome import Outcome
from bettong.testing.running import ReadyApplication
from bettong.worker.windows.partials import PackedAccumulators
from tests.samples.every_aggregate import every
from tests.samples.windows import Amount, Values

# One step of event time, so that the bound of the source is some of them.
STEP_NS = 250
KINDS = {
    "tumbling": Ranges(10, 10, 3, 0),
    "sliding": Ranges(12, 4, 0, 5),
    "uneven": Ranges(7, 3, 1, 0),
}
KEYS: dict[str, Any] = {
    "field": "key",
    "fields": ("key", "value"),
    "function": lambda amount: f"{amount.key % 2}",
    "pair": lambda amount: (amount.key, b"\0x"),
    "all": (),
}
OPTIONS: dict[str, dict[str, Any]] = {
    "": {},
    "emit_empty": {"emit_empty": True},
    "early": {"early": timedelta(seconds=1)},
}


@dataclass
class Seen:
    """The arguments of a firing, for any key."""

    key: str
    start: int
    values: str
    final: bool


class Listed(Values):
    """The same of keys of any type."""

    def output(self, key: Any, accumulator: list[int], window: bettong.Window) -> Seen:  # type: ignore[override]
        return Seen(repr(key), window.start, " ".join(map(str, accumulator)), window.final)


def scaled(kind: Ranges) -> Ranges:
    return Ranges(*(STEP_NS * each for each in (kind.size_ns, kind.slide_ns, kind.offset_ns, kind.delay_ns)))


def _thirds(amount: Amount) -> int:
    return amount.value % 3


def application(
    kind: WindowKind,
    aggregation: Any,
    key: Any,
    *,
    is_local: bool,
    out_of_order: int = 0,
    first_key: Any = _thirds,
    **options: Any,
) -> Application:
    app = Application("meters")
    source = app.source(
        "in",
        schema=Amount,
        key=first_key,
        event_time="at",
        out_of_order=timedelta(microseconds=out_of_order),
    )
    if is_local:
        results = source.local(key).window(kind, aggregation, name="seen", **options)
    else:
        results = source.key_by(key, name="anew").window(kind, aggregation, name="seen", **options)
    results.sink("out")
    return app


@cache
def ready(kind: str, aggregation: str, key: str, option: str, *, is_local: bool) -> ReadyApplication:
    of = every() if aggregation == "every" else Listed()
    app = application(
        scaled(KINDS[kind]), of, KEYS[key], is_local=is_local, out_of_order=2, **OPTIONS[option]
    )
    return ReadyApplication(app, compiled=False)


def by_key(results: Sequence[Any]) -> dict[Any, list[Any]]:
    """The results of each key, in their order."""
    found: dict[Any, list[Any]] = defaultdict(list)
    for each in results:
        found[each.key].append(each)
    return found


def inputs_of(frames: Sequence[tuple[str, list[tuple[int, int, int]]]]) -> list[Any]:
    """Of each frame: its client, and the key, time and value of messages, each some steps before or behind the last."""
    at, found = 40, []
    for client, messages in frames:
        amounts = []
        for key, ahead, value in messages:
            at = max(0, at + ahead)
            amounts.append(Amount(key, at * STEP_NS, value))
        found.append(frame("in", *amounts, client=client))
    return found


def ran(of: ReadyApplication, inputs: Sequence[Any], partitions: int, moments: dict[int, Any]) -> Outcome:
    session = AppSession(of, partitions=partitions)
    for number, each in enumerate(inputs):
        session.step(*([moments[number]] if number in moments and number else []), each)
    return session.finish(until=END)


MESSAGES = st.lists(
    st.tuples(st.integers(1, 3), st.sampled_from([-40, -19, -6, 0, 0, 0, 1, 3, 14, 40]), st.integers(0, 9)),
    min_size=1,
    max_size=12,
)


@pytest.mark.parametrize(
    ("aggregation", "key", "option"),
    [
        ("every", "field", ""),
        ("every", "field", "early"),
        ("listed", "field", "emit_empty"),
        ("listed", "fields", "early"),
        ("listed", "function", "emit_empty"),
        ("listed", "pair", ""),
        ("listed", "all", "early"),
    ],
)
@settings(max_examples=20)
@given(
    kind=st.sampled_from(list(KINDS)),
    frames=st.lists(st.tuples(st.sampled_from(["a", "a", "b"]), MESSAGES), min_size=1, max_size=8),
    partitions=st.integers(1, 3),
    moments=st.dictionaries(st.integers(1, 7), st.sampled_from([CRASH, RESTORE])),
)
def test_results_are_those_without_it(
    aggregation: str,
    key: str,
    option: str,
    kind: str,
    frames: list[tuple[str, list[tuple[int, int, int]]]],
    partitions: int,
    moments: dict[int, Any],
) -> None:
    """Messages out of order, some of them late or partly late, of two clients that know nothing of each other."""
    inputs = inputs_of(frames)
    plain, local = (
        ran(ready(kind, aggregation, key, option, is_local=is_local), inputs, partitions, moments)
        for is_local in (False, True)
    )
    assert by_key(local.outputs["out"]) == by_key(plain.outputs["out"])
    assert local.dead_letters == plain.dead_letters == []
    assert (local.late, local.partly_late) == (plain.late, plain.partly_late)
    assert local.states["seen"] == plain.states["seen"]


@pytest.mark.parametrize("option", ["", "early", "emit_empty"])
@settings(max_examples=40)
@given(times=st.lists(st.integers(0, 60), min_size=2, max_size=14), kind=st.sampled_from(list(KINDS)))
def test_messages_of_a_frame_that_are_late_do_not_go_with_those_that_are_not(
    option: str, times: list[int], kind: str
) -> None:
    """Of one key and client, in one partition: lateness depends on the frame alone."""
    inputs = [frame("in", *(Amount(1, at * STEP_NS, number) for number, at in enumerate(times)))]
    plain, local = (
        run(ready(kind, "listed", "field", option, is_local=is_local), inputs, until=END)
        for is_local in (False, True)
    )
    assert local.outputs == plain.outputs
    assert (local.late, local.partly_late) == (plain.late, plain.partly_late)


def test_late_messages_are_counted_one_by_one() -> None:
    times = [5, 5, 60, 5, 5, 6]
    inputs = [frame("in", *(Amount(1, at * STEP_NS, number) for number, at in enumerate(times)))]
    outcome = run(ready("tumbling", "listed", "field", "", is_local=True), inputs, until=END)
    assert [each.values for each in outcome.outputs["out"]] == ["0 1", "2"]
    assert outcome.late == 3


def with_failures(*, is_local: bool) -> Application:
    """Negative values, and a key of 7, raise."""
    return application(
        scaled(KINDS["sliding"]), Listed(), _key_or_error, is_local=is_local, out_of_order=10**6
    )


def _key_or_error(amount: Amount) -> str:
    if amount.value == 7:
        raise ValueError("seven")
    return f"{amount.key % 2}"


@settings(max_examples=40)
@given(
    messages=st.lists(
        st.tuples(st.integers(1, 4), st.integers(0, 90), st.sampled_from([-1, 1, 2, 7])),
        min_size=1,
        max_size=20,
    ),
    cut=st.integers(0, 20),
)
def test_what_cannot_be_added_is_a_dead_letter_and_takes_nothing_else_with_it(
    messages: list[tuple[int, int, int]], cut: int
) -> None:
    amounts = [Amount(key, at * STEP_NS, value) for key, at, value in messages]
    inputs = [frame("in", *each) for each in (amounts[:cut], amounts[cut:]) if each]
    plain, local = (
        run(with_failures(is_local=is_local), inputs, until=END, partitions=2) for is_local in (False, True)
    )
    assert by_key(local.outputs["out"]) == by_key(plain.outputs["out"])
    assert by_key(local.outputs["out"]) or all(value in (-1, 7) for _, _, value in messages)

    def dead(outcome: Outcome) -> list[tuple[str, Any]]:
        return sorted((each.reason, str(each.message)) for each in outcome.dead_letters)

    assert dead(local) == dead(plain)
    assert len(dead(local)) == sum(value in (-1, 7) for _, _, value in messages)


def test_neither_frames_nor_partitions_crashes_and_repetitions_make_a_difference() -> None:
    """Of messages whose order the log decides: those of a key come from one partition."""
    kind = scaled(KINDS["sliding"])
    app = application(kind, every(), "key", is_local=True, out_of_order=2, first_key="key")
    amounts = [Amount(1 + at % 2, (3 * at + at * at % 5) * STEP_NS, at) for at in range(1, 12)]
    check(app, [frame("in", *amounts[:4]), frame("in", *amounts[4:])])


def test_what_cannot_be_added_is_in_the_stream_of_its_dead_letters() -> None:
    app = with_failures(is_local=True)
    seen: bettong.Stream[Seen] = bettong.Stream(app, app.nodes["seen"])  # type: ignore[arg-type]
    seen.dead_letters.sink("refused")
    seen.dead_letters.sink("refused-again")
    amounts = [Amount(1, 1, value) for value in (1, -1, 2, 7)]
    outputs = run(app, [frame("in", *amounts)], until=END).outputs
    assert outputs["refused"] == outputs["refused-again"]
    assert [(each.computation, each.reason, each.message) for each in outputs["refused"]] == [
        ("seen-partials", "ValueError: negative", '{"key":1,"at":1,"value":-1}')
    ]


@pytest.mark.parametrize("fails", [-1, 7])
def test_a_partition_stops_at_what_cannot_be_added_and_combines_nothing_behind_it(fails: int) -> None:
    """-1 has no place in a window, 7 has no key."""
    app = Application("meters")
    source = app.source("in", schema=Amount, event_time="at")
    local = source.local(_key_or_error, on_error="stop")
    local.window(scaled(KINDS["tumbling"]), Listed(), name="seen", on_error="stop").sink("out")
    amounts = [Amount(1, 1, value) for value in (1, fails, 2)]
    outcome = run(app, [frame("in", *amounts)], until=END)
    assert outcome.stopped is not None
    assert "index 1" in outcome.stopped
    assert outcome.outputs["out"] == []


def test_results_of_windows_are_combined_as_messages_are() -> None:
    outputs = []
    for is_local in (False, True):
        app = application(scaled(KINDS["tumbling"]), Listed(), "key", is_local=False)
        seen: bettong.Stream[Seen] = bettong.Stream(app, app.nodes["seen"])  # type: ignore[arg-type]
        of_all: Any = seen.local(()) if is_local else seen.collect(name="collected")
        most = bettong.aggregate(Longest, longest=bettong.Top(2, "values", by=_length))
        of_all.window(scaled(Ranges(20, 20, 3, 0)), most, name="longest").sink("most")
        amounts = [Amount(number % 5, number * STEP_NS, number) for number in range(60)]
        outputs.append(run(app, [frame("in", *amounts[:31]), frame("in", *amounts[31:])], until=END).outputs)
    assert outputs[0] == outputs[1]
    assert len(outputs[0]["most"]) > 2


@dataclass
class Longest:
    longest: list[str]


def _length(seen: Seen) -> int:
    return len(seen.values)


def test_fewer_messages_pass_the_log() -> None:
    amounts = [Amount(number % 3, number * STEP_NS // 8, number % 10) for number in range(240)]
    counts = {}
    for is_local in (False, True):
        app = application(scaled(KINDS["tumbling"]), every(), "key", is_local=is_local)
        outcome = run(app, [frame("in", *amounts)], until=END)
        counts[is_local] = outcome.counters["messages"] - len(amounts)
        assert sum(each.messages for each in outcome.outputs["out"]) == len(amounts)
    # Windows of ten steps, beginning at three, over 30 steps: the ends of two, and two whole ones; of three keys.
    assert counts == {False: 240, True: 3 * 4}


class Texts:
    """All texts of a window: as long as its messages, and longer."""

    def __init__(self, times: int) -> None:
        self._times = times

    def initial(self) -> list[str]:
        return []

    def update(self, accumulator: list[str], amount: Amount) -> list[str]:
        return [*accumulator, f"{amount.value:0{self._times}}"]

    def combine(self, left: list[str], right: list[str]) -> list[str]:
        return [*left, *right]

    def output(self, key: int, accumulator: list[str], window: bettong.Window) -> Seen:
        return Seen(str(key), window.start, " ".join(accumulator).replace("0", ""), window.final)


def test_what_is_larger_than_its_messages_is_divided_so_that_frames_hold_it() -> None:
    amounts = [Amount(1, 1, 1 + number % 9) for number in range(3000)]
    outcomes = []
    for is_local in (False, True):
        app = application(scaled(KINDS["tumbling"]), Texts(1000), "key", is_local=is_local)
        outcomes.append(run(app, [frame("in", *amounts)], until=END))
    plain, local = outcomes
    assert local.outputs == plain.outputs
    assert local.dead_letters == []
    assert len(amounts) // 9 < local.counters["messages"] - len(amounts) < len(amounts)


class Unfit(Listed):
    """Its accumulators are no plain data."""

    def update(self, accumulator: Any, amount: Amount) -> Any:
        return [*accumulator, object()] if amount.value == 5 else [*accumulator, amount.value]


def test_accumulators_that_are_no_plain_data_make_dead_letters_of_their_messages() -> None:
    app = application(scaled(KINDS["tumbling"]), Unfit(), "key", is_local=True)
    amounts = [Amount(1, 1, 4), Amount(1, 2, 5), Amount(2, 2, 6)]
    outcome = run(app, [frame("in", *amounts[::2], amounts[1])], until=END, partitions=1)
    assert [each.values for each in outcome.outputs["out"]] == ["6"]
    assert [each.message for each in outcome.dead_letters] == [
        '{"key":1,"at":1,"value":4}',
        '{"key":1,"at":2,"value":5}',
    ]
    assert all("object, which is neither plain data" in each.reason for each in outcome.dead_letters)


def test_what_was_combined_for_other_windows_is_no_part_of_these() -> None:
    """As after a change of the application, while its log still holds records of the old one."""

    def packed(kind: Ranges) -> PackedAccumulators:
        app = application(kind, every(), "key", is_local=False)
        node: Any = app.nodes["seen"]
        return PackedAccumulators(node)

    before, now = packed(KINDS["tumbling"]), packed(KINDS["sliding"])
    with pytest.raises(ValueError, match="combined for other windows than 'seen' has now"):
        now.unpack(before.pack([1, 2]))


@pytest.mark.parametrize(
    "accumulator",
    [
        7,
        None,
        "ä",
        [1, None, 2.5, "a", b"b", True],
        [2**70, 1],
        ["\ud800"],
        (1, 2),
        [(1, 2), {3: None}],
        {"a": [1]},
    ],
    ids=str,
)
def test_accumulators_are_the_same_behind_the_log(accumulator: Any) -> None:
    node: Any = application(KINDS["tumbling"], every(), "key", is_local=False).nodes["seen"]
    packed = PackedAccumulators(node)
    found = packed.unpack(packed.pack(accumulator))
    assert (found, type(found)) == (accumulator, type(accumulator))
    assert repr(found) == repr(accumulator)
