"""Bounds the concurrent long calls per client: sessions, subscriptions. Pure; used from one thread."""

from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager

from bettong.ingest.refusal import exhausted


class ClientShares:
    """The calls of each client; see `caller` for how a client is identified."""

    def __init__(self, calls_max: int, *, what: str, setting: str, remedy: str) -> None:
        """For error messages: `what` the calls are, the `setting` of `calls_max`, and the `remedy` for a client."""
        self._calls_max = calls_max
        self._what = what
        self._setting = setting
        self._remedy = remedy
        # Only clients that have calls.
        self._calls: Counter[str] = Counter()

    @contextmanager
    def share(self, client: str) -> Iterator[None]:
        """Counts a call of a client while the block lasts. Raises Refusal (RESOURCE_EXHAUSTED) at the limit."""
        if self._calls[client] >= self._calls_max:
            raise exhausted(
                f"{client} has {self._calls_max} {self._what} here, as many as one client may have"
                f" ({self._setting}); {self._remedy}, or give clients that share an address tokens of their own"
            )
        self._calls[client] += 1
        try:
            yield
        finally:
            self._calls[client] -= 1
            if not self._calls[client]:
                del self._calls[client]
