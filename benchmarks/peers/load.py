"""What a run feeds, and the right answer: records before the clock starts, records behind it, results by key."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from benchmarks.peers.awaited import Awaited, NewestResults, ResultCount
from examples.market_spread_oracle import Results

INPUT, OUTPUT = "messages", "results"


class Record(NamedTuple):
    """A record to feed. Without a partition its key decides; without a time it has that of sending."""

    value: bytes
    key: bytes = b""
    partition: int = -1
    topic: str = INPUT
    time_ms: int = 0


@dataclass(frozen=True, slots=True)
class Load:
    """Records to feed before the clock starts and after, and what must come out.

    `timed_messages`: of the latter. `opening_results`: how many the former give. `expected`: the results of both.
    `split` makes such results of the values of all records that came out, a result each.

    `update`: of results of which the newest of a key counts, however many there are, key and content of one.
    `opening_updates`: what these are before the clock starts.
    """

    opening: list[Record]
    timed: list[Record]
    timed_messages: int
    opening_results: int
    expected: Results
    split: Callable[[Sequence[bytes]], Results]
    topics: tuple[str, ...] = (INPUT,)
    update: Callable[[bytes], tuple[bytes, bytes]] | None = None
    opening_updates: Mapping[bytes, bytes] = field(default_factory=dict)

    @property
    def results(self) -> int:
        """How many results there are."""
        return sum(map(len, self.expected.values()))

    @property
    def awaited_at_start(self) -> Awaited:
        """What must come before the clock starts."""
        if self.update is None:
            return ResultCount(self.opening_results)
        return NewestResults(self.opening_updates, self.update)

    @property
    def awaited(self) -> Awaited:
        """What must have come at the end."""
        if self.update is None:
            return ResultCount(self.results)
        return NewestResults({key: newest for key, (newest,) in self.expected.items()}, self.update)
