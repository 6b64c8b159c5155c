"""What a run feeds, and the right answer: records before the clock starts, records behind it, results by key."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

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
    """

    opening: list[Record]
    timed: list[Record]
    timed_messages: int
    opening_results: int
    expected: Results
    split: Callable[[Sequence[bytes]], Results]
    topics: tuple[str, ...] = (INPUT,)

    @property
    def results(self) -> int:
        """How many results there are."""
        return sum(map(len, self.expected.values()))
