"""Pairs of two streams within bounds, in the partition worker alone, fed from memory; and a plain loop that does it.

    python -m benchmarks.interval_joins

measures also how="outer", in turns: compiled and in plain Python beside pairs alone, compiled.
"""

import struct
import time
from collections import defaultdict, deque
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import cache
from statistics import median

import numpy as np

import bettong
from benchmarks.folding import FRAME_MESSAGES, fold, worker_of
from benchmarks.measuring import Sample
from benchmarks.workload import ORIGIN, log_frame, pieces
from bettong.application.joins.kinds import How
from bettong.application.plan import Plan, plan
from bettong.frames.columns import Array, Columns
from bettong.frames.frame import decode, tick_record
from bettong.identifiers import Origin
from bettong.worker.output.framing import OutputRecord
from bettong.worker.stage_program import StageProgram, program

KEYS = 10_000
# Of each key a side has so many messages a second. So a message has two partners, and there are as many pairs.
_PER_KEY_S = 1
_BOUND_NS = 1_000_000_000
_MESSAGE = struct.Struct("<qqq")


@dataclass(slots=True)
class Shipped:
    """The left side."""

    key: bettong.i64
    at: bettong.i64
    weight: bettong.i64


@dataclass(slots=True)
class Arrived:
    """The right side."""

    key: bettong.i64
    at: bettong.i64
    cost: bettong.i64


@dataclass(slots=True)
class Delivered:
    """A pair."""

    key: bettong.i64
    total: bettong.i64


@bettong.compiled
def delivered(shipped: Shipped, arrived: Arrived) -> Delivered:
    """What is asked of a pair."""
    return Delivered(shipped.key, shipped.weight + arrived.cost)


@bettong.compiled
def delivered_or_not(shipped: Shipped | None, arrived: Arrived | None) -> Delivered | None:
    """The same, also of what has no partner."""
    if shipped is None:
        return None if arrived is None else Delivered(arrived.key, arrived.cost)
    return Delivered(shipped.key, shipped.weight + (0 if arrived is None else arrived.cost))


@dataclass(frozen=True, slots=True)
class JoinLoad:
    """Messages of both sides in the order of their times, with keys by chance, always the same.

    `sides`: keys, times and values of each.
    """

    sides: tuple[tuple[Array, Array, Array], tuple[Array, Array, Array]]

    @classmethod
    def of(cls, messages: int) -> "JoinLoad":
        """Half of them of each side."""
        chance, count = np.random.default_rng(1), messages // 2
        times = np.arange(count) * (_BOUND_NS // (_PER_KEY_S * KEYS))
        left, right = (
            (chance.integers(0, KEYS, count), times + lag, chance.integers(0, 1000, count)) for lag in (0, 1)
        )
        return cls((left, right))

    @property
    def messages(self) -> int:
        """How many there are."""
        return sum(len(keys) for keys, _, _ in self.sides)

    def parts(self) -> Iterator[tuple[int, int, slice]]:
        """What comes one after the other: number, side, and which of its messages."""
        for number, start in enumerate(range(0, len(self.sides[0][0]), FRAME_MESSAGES)):
            for side in range(2):
                yield 2 * number + side, side, slice(start, start + FRAME_MESSAGES)

    def right(self, how: How = "inner") -> tuple[int, int]:
        """How many results there are, and the sum of their totals."""
        left, right = self.sides
        (counts, sums), (other_counts, _) = self._partners(left, right), self._partners(right, left)
        pairs, total = int(counts.sum()), int((sums + counts * right[2]).sum())
        if how == "inner":
            return pairs, total
        alone, others_alone = right[2][counts == 0], left[2][other_counts == 0]
        return pairs + len(alone) + len(others_alone), total + int(alone.sum() + others_alone.sum())

    @staticmethod
    def _partners(
        partners: tuple[Array, Array, Array], messages: tuple[Array, Array, Array]
    ) -> tuple[Array, Array]:
        """By message, how many partners it has, and the sum of their values."""
        (keys, times, weights), (other_keys, other_times, _) = partners, messages
        width = int(times[-1]) + 4 * _BOUND_NS
        places = keys * width + times + _BOUND_NS
        order = np.argsort(places)
        places, sums = places[order], np.cumsum(np.concatenate([[0], weights[order]]))
        found = other_keys * width + other_times + _BOUND_NS
        low = np.searchsorted(places, found - _BOUND_NS)
        high = np.searchsorted(places, found + _BOUND_NS, "right")
        return high - low, sums[high] - sums[low]


def join_speed(messages: int, *, compiled: bool, how: How = "inner") -> Sample:
    """Messages a second of one core's time."""
    load, (application, ready) = _load(messages), _ready(compiled=compiled, how=how)
    records, seconds = fold(worker_of(application.application, ready), frames_of(application, load))
    assert pairs_in(application, records) == load.right(how), "the pairs are wrong"
    return Sample(load.messages / seconds, seconds * 1e6 / load.messages)


def join_against_loop(messages: int, *, compiled: bool) -> Sample:
    """The same as a multiple of the speed of the plain loop."""
    loop = plain_join_per_s(_load(messages))
    found = join_speed(messages, compiled=compiled)
    return Sample(found.value / loop, found.cpu_s_per_million)


def plain_join_per_s(load: JoinLoad) -> float:
    """Messages a second of what one would write without any framework, from bytes to results; checked."""
    sides = [
        [_MESSAGE.pack(*each) for each in zip(*map(np.ndarray.tolist, side), strict=True)]
        for side in load.sides
    ]
    parts = [(side, sides[side][part]) for _, side, part in load.parts()]
    begun = time.process_time()
    results = _loop(parts)
    seconds = time.process_time() - begun
    assert (len(results), sum(each.total for each in results)) == load.right(), "the plain loop is wrong"
    return load.messages / seconds


def _loop(parts: Sequence[tuple[int, list[bytes]]]) -> list[Delivered]:
    results: list[Delivered] = []
    kept = [defaultdict[int, deque[tuple[int, int]]](deque) for _ in range(2)]
    for side, messages in parts:
        kind, own, others = (Shipped, Arrived)[side], kept[side], kept[1 - side]
        for message in messages:
            each = kind(*_MESSAGE.unpack(message))
            at_ns, value = each.at, each.weight if isinstance(each, Shipped) else each.cost
            partners = others[each.key]
            # Both sides go on together, but for the messages of a frame.
            while partners and partners[0][0] < at_ns - _BOUND_NS:
                partners.popleft()
            results += [
                Delivered(each.key, value + other)
                for other_ns, other in partners
                if other_ns <= at_ns + _BOUND_NS
            ]
            own[each.key].append((at_ns, value))
    return results


@cache
def _load(messages: int) -> JoinLoad:
    return JoinLoad.of(messages)


@cache
def _ready(*, compiled: bool, how: How) -> tuple[Plan, StageProgram]:
    app = bettong.Application("interval-joins")
    left = app.source("shipped", schema=Shipped, key="key", event_time="at")
    right = app.source("arrived", schema=Arrived, key="key", event_time="at")
    bound = timedelta(microseconds=_BOUND_NS // 1000)
    combine = delivered if how == "inner" else delivered_or_not
    left.join_within(right, -bound, bound, combine, how=how, name="pairs").sink("delivered")
    application = plan(app)
    return application, program(application.stages[0], compiled=compiled)


def frames_of(application: Plan, load: JoinLoad) -> list[bytes]:
    """The messages as the records of one partition, and time that passes until none is kept any more."""
    sources = {source.name: source for source in application.sources}
    both = [sources[name] for name in ("shipped", "arrived")]
    columns = [
        list(pieces(Columns(source.schema, len(side[0]), side), FRAME_MESSAGES))
        for source, side in zip(both, load.sides, strict=True)
    ]
    frames = [
        log_frame(
            both[side],
            piece := columns[side][number // 2],
            sequence=number // 2 + 1,
            previous=number // 2,
            now_ns=number + 1,
            watermark_ns=int(np.asarray(piece.columns[1])[-1]),
        )
        for number, side, _ in load.parts()
    ]
    end_ns = int(load.sides[0][1][-1]) + 3 * _BOUND_NS
    ends = [
        tick_record(source.name, len(frames) + 1, {Origin(f"{source.name}/{ORIGIN}"): end_ns})
        for source in both
    ]
    return frames + ends


def pairs_in(application: Plan, records: Sequence[OutputRecord]) -> tuple[int, int]:
    """How many pairs records have, and the sum of their totals."""
    schema = application.stages[0].outputs[0].schema
    payloads = [payload for record in records if (payload := decode(record.value).columns) is not None]
    totals = [np.asarray(Columns.of_payload(schema, each).columns[1]) for each in payloads]
    return sum(map(len, totals)), sum(int(each.sum()) for each in totals)


def main() -> None:
    """Prints the median and the range of seven turns, and of each turn's speed against pairs alone, compiled."""
    modes: list[tuple[str, How, bool, int]] = [
        ("pairs alone, compiled", "inner", True, 1_000_000),
        ("outer, compiled", "outer", True, 1_000_000),
        ("outer, plain Python", "outer", False, 100_000),
    ]
    turns = [
        [join_speed(messages, compiled=compiled, how=how).value for _, how, compiled, messages in modes]
        for _ in range(7)
    ]
    for at, (name, *_) in enumerate(modes):
        found, against = [turn[at] for turn in turns], [turn[at] / turn[0] for turn in turns]
        print(
            f"{name:24} {median(found):12,.0f} messages/s ({min(found):,.0f} - {max(found):,.0f}),"
            f" {median(against):.3f} x ({min(against):.3f} - {max(against):.3f})"
        )


if __name__ == "__main__":
    main()
