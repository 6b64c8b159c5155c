"""What a run feeds, and the right answer: records before the clock starts, records behind it, results by key."""

from collections.abc import Callable
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

    `timed_messages`: of the latter. `opening_bytes`: of the former's results. `expected`: the results of both. `split`
    makes such results of all bytes that came out.
    """

    opening: list[Record]
    timed: list[Record]
    timed_messages: int
    opening_bytes: int
    expected: Results
    split: Callable[[bytes], Results]
    topics: tuple[str, ...] = (INPUT,)

    @property
    def result_bytes(self) -> int:
        """Bytes of all results."""
        return sum(len(result) for results in self.expected.values() for result in results)
