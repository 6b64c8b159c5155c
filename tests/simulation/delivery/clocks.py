"""Time in a simulated world: the true one, the clocks of its senders, and what others append meanwhile."""

from __future__ import annotations

import contextlib
import random
from collections.abc import Iterator

import pytest

from bettong import delivery
from bettong.delivery import ORIGIN_TTL_NS
from bettong.frames.frame import Frame, FrameKind, encode
from bettong.identifiers import Origin, SequenceNumber
from bettong.ingest import numbering
from tests.simulation.delivery.parts import PARTITIONS, STAGE, Log

PODS = 2
HOUR_NS = 3600 * 10**9
_JUMP_NS_MAX = 30 * HOUR_NS
# What an origin outlives in records is small here, so that what others send in a few steps makes it forgotten.
_REMEMBERED = 12
_OTHERS = 2 * _REMEMBERED
# And what one that has ended outlives: more records than clocks are set in a world, for that ages a table, too.
_ENDED = 6
OTHER = "in/other"
# By so many records of others, each as late as counts, is forgotten who has ended, and who was silent.
ENDED_RECORDS, DAY_RECORDS = _ENDED + 2, _REMEMBERED + 2


_STEP_NS = ORIGIN_TTL_NS // _REMEMBERED


@contextlib.contextmanager
def short_memory() -> Iterator[None]:
    """Consumers remember fewer records, and senders know it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(delivery, "AGE_STEP_NS", _STEP_NS)
        patch.setattr(delivery, "ENDED_TTL_NS", _ENDED * _STEP_NS)
        patch.setattr(delivery, "_SWEEP_NS", _STEP_NS // 2)
        patch.setattr(numbering, "DISTANCE_MAX", _REMEMBERED // 2)
        patch.setattr(numbering, "OPEN_DISTANCE", _REMEMBERED // 4)
        yield


class Clocks:
    """`now_ns` is the true time, which nobody sees; `ends` what each sender knows of the partitions' ends."""

    def __init__(self, chance: random.Random, log: Log) -> None:
        self.now_ns = 10**18
        self.ends = [[-1] * PARTITIONS for _ in range(PODS)]
        self._chance = chance
        self._log = log
        self._skew_ns = [0] * PODS
        self._pod_ns = [0] * PODS

    @property
    def steady_s(self) -> float:
        """Of a clock that is never set."""
        return self.now_ns / 10**9

    @property
    def ms(self) -> float:
        """As `steady_s`, in the unit of leases."""
        return self.now_ns / 10**6

    def of_pod(self, pod: int) -> int:
        """The ingest time that a sender stamps."""
        self._pod_ns[pod] = max(self._pod_ns[pod], self.now_ns + self._skew_ns[pod])
        return self._pod_ns[pod]

    def jump(self, pod: int) -> float:
        """The clock of a sender is set; returns how far it is ahead, in hours."""
        self._skew_ns[pod] = self._chance.randint(-_JUMP_NS_MAX, _JUMP_NS_MAX)
        return self._skew_ns[pod] / HOUR_NS

    def days(self) -> None:
        """A long time passes, in which others feed the source, or nobody does."""
        step_ns = self._chance.choice((ORIGIN_TTL_NS // 2, ORIGIN_TTL_NS, 3 * ORIGIN_TTL_NS // 2)) // _OTHERS
        known_to = self._some_pods()
        for _ in range(_OTHERS):
            self.now_ns += step_ns
            if self._chance.random() < 0.9:
                self._other(self.now_ns, known_to)

    def run_away(self) -> None:
        """A clock runs through days in a moment, with records enough that everybody is forgotten."""
        known_to = self._some_pods()
        clock_ns = max(self.now_ns, *self._pod_ns)
        for _ in range(_OTHERS):
            clock_ns += ORIGIN_TTL_NS // 4
            self._other(clock_ns, known_to)

    def _some_pods(self) -> list[int]:
        return self._chance.sample(range(PODS), self._chance.randint(0, PODS))

    def _other(self, now_ns: int, known_to: list[int]) -> None:
        """Another client's record in each partition; these senders know of it."""
        value = _word(now_ns)
        for partition in range(PARTITIONS):
            offset = self._log.append(STAGE, partition, value)
            for pod in known_to:
                self.ends[pod][partition] = max(self.ends[pod][partition], offset)


def later(since_ns: int, records: int) -> Iterator[bytes]:
    """So many records of another client, which make a table as much older as records can."""
    return (_word(since_ns + (number + 1) * _STEP_NS) for number in range(records))


def _word(now_ns: int) -> bytes:
    return encode(
        Frame(
            origin=Origin(OTHER),
            sequence=SequenceNumber(0),
            previous=SequenceNumber(0),
            kind=FrameKind.OPEN,
            ingest_ns=now_ns,
        )
    )
