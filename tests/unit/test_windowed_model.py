"""The models of `tests/faults/windowed.py` say what the application gives, and the specs see what differs from it."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import timedelta
from itertools import cycle
from math import ceil
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from bettong.application.plan import plan
from bettong.chaos.outputs import Difference, differences, table
from bettong.chaos.spec import OutputComparison, read
from bettong.routing import partition_of
from bettong.testing import CRASH, RESEND, RESTORE, clock, end_stream, frame
from bettong.testing.inputs import ClientFrame
from bettong.testing.running import ReadyApplication, run
from tests.faults import joins_model, windowed_model
from tests.faults.windowed import app, is_at_home, leaves_home
from tests.samples.kept_kernels import kept_kernels

PARTITIONS = 4
ROUNDS = 40
PLAN = plan(app)
FAULTS = Path(__file__).parents[1] / "faults"
SPECS = sorted(FAULTS.glob("*/windowed-*.toml"))
COMPARED = read(FAULTS / "short" / "windowed-resident.toml").invariants.outputs
SINKS = [*windowed_model.CASES, *joins_model.CASES]
SEVERAL_A_KEY = [name for name in SINKS if name not in ("per-minute-of-all", "unsettled")]


class Stream(NamedTuple):
    """What a client sends."""

    source: str
    messages: list[Any]
    round_messages: int

    def frames(self, client: str) -> list[ClientFrame]:
        size = self.round_messages
        return [
            frame(self.source, *self.messages[start : start + size], client=client)
            for start in range(0, len(self.messages), size)
        ]


def streams(rounds: int) -> list[Stream]:
    """Those of payments, and that of bills."""
    return [
        *(
            Stream(
                "payments", list(windowed_model.paid(number, rounds=rounds)), windowed_model.ROUND_PAYMENTS
            )
            for number in range(1, windowed_model.STREAMS + 1)
        ),
        Stream("bills", list(joins_model.billed(rounds=rounds)), joins_model.ROUND_BILLS),
    ]


def in_turns(sent: Sequence[Stream], ahead: Sequence[float] = (0, 0, 0)) -> list[ClientFrame]:
    """Their frames; a stream may be some rounds ahead."""
    found = [
        (number - rounds, place, each)
        for place, (stream, rounds) in enumerate(zip(sent, ahead, strict=True))
        for number, each in enumerate(stream.frames(f"client-{place}"))
    ]
    return [each for *_, each in sorted(found, key=lambda each: each[:2])]


def disturbed(frames: Iterable[ClientFrame]) -> list[object]:
    """Behind each fourth frame, in turn, something that must make no difference."""
    moments = cycle([RESTORE, CRASH, RESEND, CRASH])
    return [
        step
        for number, each in enumerate(frames)
        for step in ((each, next(moments)) if number % 4 == 0 else (each,))
    ]


def expected(sink: str, rounds: int) -> list[Any]:
    """What the model of the sink says."""
    sent = windowed_model.all_paid(rounds=rounds)
    if sink in windowed_model.CASES:
        return list(windowed_model.CASES[sink](sent))
    return list(joins_model.CASES[sink](sent, joins_model.all_billed(rounds=rounds)))


def lines(messages: Iterable[Any]) -> list[bytes]:
    return [json.dumps(asdict(each), separators=(",", ":")).encode() for each in messages]


def compared(golden: Sequence[bytes], found: Sequence[bytes], output: OutputComparison) -> list[Difference]:
    """As the specs compare the files of a sink."""
    wanted, there = (table([("0.jsonl", b"\n".join(each))], output) for each in (golden, found))
    return differences(wanted, there, output.compare)


@pytest.fixture(scope="module", params=["plain Python", "compiled, disturbed, bills first"])
def delivered(request: pytest.FixtureRequest) -> Mapping[str, list[Any]]:
    """What the application gives."""
    if request.param == "plain Python":
        outcome = run(app, in_turns(streams(ROUNDS)), partitions=PARTITIONS)
    else:
        ready = ReadyApplication(app, compiled=True, cache=kept_kernels())
        steps = disturbed(in_turns(streams(ROUNDS), ahead=(0, 0.5, 1)))
        outcome = run(ready, steps, partitions=PARTITIONS)
    assert (outcome.dead_letters, outcome.stopped) == ([], None)
    return outcome.outputs


@pytest.mark.parametrize("sink", SINKS)
def test_the_application_gives_what_the_model_says(sink: str, delivered: Mapping[str, list[Any]]) -> None:
    golden = expected(sink, ROUNDS)
    assert len(golden) > 5
    assert compared(lines(golden), lines(delivered[sink]), COMPARED[sink]) == []


def test_nothing_more_comes_when_the_streams_have_ended_and_time_goes_on() -> None:
    """So it does not matter how long a run takes to settle."""
    rounds = 5
    steps = [*in_turns(streams(rounds)), end_stream(), clock(timedelta(hours=3))]
    outputs = run(app, steps, partitions=PARTITIONS).outputs
    for sink, results in outputs.items():
        assert compared(lines(expected(sink, rounds)), lines(results), COMPARED[sink]) == [], sink


def test_joins_pair_some_and_leave_some_alone() -> None:
    """So that each way to come out is tried."""
    for sink in ("matched", "met"):
        ways = Counter((each.payment > 0, each.bill > 0) for each in expected(sink, ROUNDS))
        assert len(ways) == 3
        assert min(ways.values()) > 50
    for sink, other in (("charged", "bill"), ("since-home", "home")):
        assert min(Counter(getattr(each, other) > 0 for each in expected(sink, ROUNDS)).values()) > 50
    assert Counter(type(each).__name__ for each in expected("unsettled", ROUNDS)).keys() == {
        "Payment",
        "Bill",
    }


def lose(found: list[bytes]) -> list[bytes]:
    return [*found[:3], *found[4:]]


def double(found: list[bytes]) -> list[bytes]:
    return [*found[:4], *found[3:]]


def change(found: list[bytes]) -> list[bytes]:
    """A result tells another number, as a join with the wrong partner does."""
    fields = json.loads(found[3])
    name = next(reversed(fields))
    return [*found[:3], json.dumps({**fields, name: "?"}, separators=(",", ":")).encode(), *found[4:]]


DAMAGES: list[tuple[Callable[[list[bytes]], list[bytes]], tuple[int, int, int]]] = [
    (lose, (1, 0, 0)),
    (double, (0, 1, 0)),
    (change, (1, 0, 1)),
]


@pytest.mark.parametrize("sink", SINKS)
def test_a_result_that_is_lost_doubled_or_another_one_is_noticed(sink: str) -> None:
    golden = lines(expected(sink, ROUNDS))
    for damage, counts in DAMAGES:
        found = compared(golden, damage(golden), COMPARED[sink])
        assert (
            tuple(sum(getattr(each, name) for each in found) for name in ("lost", "doubled", "unexpected"))
            == counts
        ), damage


@pytest.mark.parametrize("sink", SEVERAL_A_KEY)
def test_results_of_a_key_in_another_order_are_noticed(sink: str) -> None:
    golden = lines(expected(sink, ROUNDS))
    labels = [label_of(each, sink) for each in golden]
    label = next(label for label, count in Counter(labels).items() if count > 1)
    first, second, *_ = (place for place, each in enumerate(labels) if each == label)
    found = list(golden)
    found[first], found[second] = found[second], found[first]
    (difference,) = compared(golden, found, COMPARED[sink])
    assert (difference.label, difference.misplaced) == (label, 2)


def label_of(line: bytes, sink: str) -> str:
    key = COMPARED[sink].key
    assert isinstance(key, str)
    return str(json.loads(line)[key])


def test_a_message_that_a_join_forgot_or_took_twice_is_noticed() -> None:
    """The application without a bill and a payment at home, and with a bill twice."""
    rounds = 10
    sent = streams(rounds)
    first, bills = sent[0].messages, sent[-1].messages
    del first[next(place for place, each in enumerate(first) if is_at_home(each) and not leaves_home(each))]
    del bills[40]
    bills.insert(71, bills[70])
    outputs = run(app, in_turns(sent), partitions=PARTITIONS).outputs
    found = {
        sink: compared(lines(expected(sink, rounds)), lines(outputs[sink]), COMPARED[sink])
        for sink in joins_model.CASES
    }
    for sink, counts in {
        "settled": ("lost", "doubled"),
        "matched": ("lost", "doubled", "unexpected"),
        "met": ("lost", "doubled"),
        "charged": ("lost", "unexpected"),
        "since-home": ("lost", "unexpected"),
    }.items():
        for count in counts:
            assert sum(getattr(each, count) for each in found[sink]) > 0, (sink, count)


@pytest.mark.parametrize("path", SPECS, ids=lambda path: f"{path.parent.name}-{path.stem}")
def test_each_spec_compares_every_sink_with_its_model(path: Path) -> None:
    outputs = read(path).invariants.outputs
    assert outputs == COMPARED
    assert outputs.keys() == set(SINKS) == {sink.name for sink in PLAN.sinks}
    for sink, output in outputs.items():
        assert str(output.expected) == f"{sink}.jsonl"


def test_every_partition_hears_of_every_stream_in_each_round() -> None:
    """So no watermark is further behind than two rounds, however long a process is away."""
    for stream in streams(ROUNDS):
        size = ceil(len(stream.messages) / ROUNDS)  # as a chaos run cuts its frames
        for start in range(0, len(stream.messages) - size, size):
            accounts = {each.account for each in stream.messages[start : start + size]}
            assert {partition_of(each, PARTITIONS) for each in accounts} == set(range(PARTITIONS))
