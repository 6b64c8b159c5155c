"""Numbers of keys as loads of the lab: first an even one of each key, then more, of which odd ones have results."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property

from benchmarks import number_load
from bettong.frames.columns import Array
from bettong.lab.load import LoadPart, SinkResults

SOURCE = "numbers"
# From keys and numbers, those before the clock left out, to the keys and totals of all results.
Results = Callable[[Array, Array], tuple[Array, Array]]


class NumberLoad:
    """See `bettong.lab.load.LabLoad`; one number in `every` is odd."""

    def __init__(
        self,
        messages: int,
        seed: int,
        *,
        keys: int,
        every: int,
        sink: str = "totals",
        results: Results = number_load.totals_of,
    ) -> None:
        self._keys, self._sink, self._results = keys, sink, results
        self._numbers = number_load.numbers(messages, keys=keys, every=every, seed=number_load.SEED + seed)

    def first(self) -> Sequence[LoadPart]:
        """A number of each key, which creates the key's state."""
        return [_part(number_load.all_keys(self._keys))]

    def rounds(self) -> Iterator[Sequence[LoadPart]]:
        """Numbers of random keys, in one round."""
        yield [_part(self._numbers)]

    def result_bytes(self) -> Mapping[str, int]:
        """The bytes of one result per odd number."""
        return {self._sink: sum(map(len, self._expected))}

    def wrong(self, results: Mapping[str, SinkResults]) -> str:
        """Checks that each total of each key arrived once."""
        found = sorted(results[self._sink].each)
        if found == self._expected:
            return ""
        right = len(set(found) & set(self._expected))
        return f"{len(found)} results for {len(self._expected)}, of which {right} are right"

    @cached_property
    def _expected(self) -> list[bytes]:
        """Computed on first use: processes that only send messages do not need it."""
        keys, totals = self._results(*self._numbers)
        pairs = zip(keys.tolist(), totals.tolist(), strict=True)
        return sorted(f'{{"key":{key},"total":{total}}}'.encode() for key, total in pairs)


def _part(numbers: tuple[Array, Array]) -> LoadPart:
    keys, values = numbers
    return LoadPart(SOURCE, {"key": keys, "value": values})
