"""What a race waits for: as many results as there must be, or of updates the right newest one of each key."""

from collections.abc import Callable, Iterable, Mapping
from typing import Protocol


class Awaited(Protocol):
    """Results that must come."""

    @property
    def left(self) -> int:
        """How many of them are not there."""

    def note(self, results: Iterable[bytes]) -> None:
        """Some have come."""


class ResultCount:
    """So many, whatever they are. See Awaited."""

    def __init__(self, count: int) -> None:
        self.left = count

    def note(self, results: Iterable[bytes]) -> None:
        """See Awaited."""
        self.left = max(self.left - sum(1 for _ in results), 0)


class NewestResults:
    """The newest result of each key. See Awaited.

    `split`: key and content of a result. What holds nothing, by which Kafka deletes a key, is left out: a right one
    follows.
    """

    def __init__(
        self, expected: Mapping[bytes, bytes], split: Callable[[bytes], tuple[bytes, bytes]]
    ) -> None:
        self.newest: dict[bytes, bytes] = {}
        self._expected, self._split = expected, split
        self._wrong = set(expected)

    @property
    def left(self) -> int:
        """See Awaited."""
        return len(self._wrong)

    def note(self, results: Iterable[bytes]) -> None:
        """See Awaited."""
        for result in filter(None, results):
            key, content = self._split(result)
            self.newest[key] = content
            if self._expected.get(key) == content:
                self._wrong.discard(key)
            else:
                self._wrong.add(key)
