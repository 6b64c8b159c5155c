"""Records at a fixed rate: when each is due, and whether its latency is measured."""

import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from threading import Event

from benchmarks.peers.load import Record


@dataclass(frozen=True, slots=True)
class FixedRate:
    """So many messages a second, for so long after a warm-up, in which nothing is measured."""

    messages_per_s: int
    seconds: float
    warm_up_s: float

    @property
    def messages(self) -> int:
        """All of them, with those of the warm-up."""
        return round((self.warm_up_s + self.seconds) * self.messages_per_s)

    def due_s(self, number: int) -> float:
        """When the message is due, after the beginning; it counts from 0."""
        return number / self.messages_per_s

    def is_measured(self, number: int) -> bool:
        """Whether it is due after the warm-up; a negative number is of what came before all."""
        return number >= 0 and self.due_s(number) >= self.warm_up_s


def paced(records: Sequence[Record], rate: FixedRate, begun_s: float, stopping: Event) -> Iterator[Record]:
    """Each when it is due, counted from `begun_s` (monotonic); ends early when it is told to. Blocks between them."""
    for number, record in enumerate(records):
        if stopping.wait(max(0.0, begun_s + rate.due_s(number) - time.monotonic())):
            return
        yield record
