"""A latency by percentile, as in HdrHistogram's plots, for a live record.

Percentiles of several receivers cannot be combined: to show them, take the slowest for each percentile.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from dataclasses import dataclass

# Fractions of the messages, spaced as in the plot: towards 1 the remainder shrinks tenfold.
SHARES = (0.1, 0.25, 0.5, 0.75, 0.9, 0.95, 0.98, 0.99, 0.995, 0.998, 0.999, 0.9995, 0.9999, 0.99999, 1.0)


@dataclass(frozen=True, slots=True)
class LatencyPercentiles:
    """Of `messages` recent messages: for each of SHARES, the latency within which that share stays, ms."""

    messages: int
    within_ms: Sequence[float]

    def to_text(self) -> str:
        """For a live record."""
        return json.dumps([self.messages, *self.within_ms], separators=(",", ":"))

    @classmethod
    def parse(cls, text: str) -> LatencyPercentiles:
        """The inverse of `to_text`. Raises ValueError."""
        try:
            messages, *within_ms = json.loads(text)
            parsed = cls(int(messages), percentiles_in(within_ms))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ValueError(f"no latency by percentile: {error!r}") from None
        if parsed.messages < 1:
            raise ValueError(f"no latency by percentile: of {parsed.messages} messages")
        return parsed


def percentiles_in(found: Sequence[object]) -> tuple[float, ...]:
    """A number for each of SHARES, in their order. Raises ValueError or TypeError for anything else."""
    numbers = tuple(map(float, found))  # type: ignore[arg-type]
    if len(numbers) != len(SHARES) or not all(0 <= each < math.inf for each in numbers):
        raise ValueError(f"{len(numbers)} percentiles, expected {len(SHARES)} numbers from 0 on")
    return numbers


def ranks(total: int) -> list[int]:
    """The rank of each of SHARES among `total` messages sorted by latency, from 1 on.

    As in HdrHistogram's `get_value_at_percentile`.
    """
    return [max(1, int(total * share + 0.5)) for share in SHARES]
