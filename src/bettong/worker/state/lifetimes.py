"""How long states live: the log clock at each key's last message, for keys that are objects and for slots of an array.

Without a time to live (`ttl_ns` None) every key lives for ever and nothing is kept. Whether a key lives is exact,
whenever it is asked; those whose time is over are looked for a few times in that time, for that looks at all keys.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any

import numpy as np

from bettong.frames.columns import Array

# Looks in the time to live: so the memory of a state is held for so much of it longer.
_LOOKS = 8
_STORED = np.dtype("<i8")
# The clock at the last message of a slot that has had none: its time is never over.
_NEVER_NS = 2**62


class _Clock:
    """The log clock, and when to look next."""

    def __init__(self, ttl_ns: int | None) -> None:
        self.ttl_ns = ttl_ns
        self.log_ns = 0
        self._next_look_ns = 0

    def looks(self, log_ns: int) -> bool:
        """The clock is there now: whether to look for what is over."""
        self.log_ns = log_ns
        if self.ttl_ns is None or log_ns < self._next_look_ns:
            return False
        self._next_look_ns = log_ns + self.ttl_ns // _LOOKS
        return True

    def read(self, data: bytes, keys: int) -> Array:
        """The clocks of so many keys as they were stored; what was saved without a time to live begins to age now.

        ValueError when they are of another number of keys.
        """
        found = np.frombuffer(data, _STORED) if data else np.full(keys, self.log_ns, _STORED)
        if len(found) != keys:
            raise ValueError(f"times of {len(found)} keys, expected {keys}")
        return found


class KeyLifetimes(_Clock):
    """Of a table whose keys are Python objects."""

    def __init__(self, ttl_ns: int | None) -> None:
        super().__init__(ttl_ns)
        self._last_ns: dict[Any, int] = {}

    def renewed(self, keys: Collection[Any], log_ns: int) -> list[Any]:
        """These keys have a message now. Returns those whose time was over before."""
        self.log_ns = log_ns
        over = [key for key in keys if not self.lives(key)]
        self._last_ns.update(dict.fromkeys(keys, log_ns))
        return over

    def over(self, log_ns: int) -> Iterator[Any]:
        """Of keys whose time is over, those that are found now. They are forgotten."""
        if self.looks(log_ns):
            for key in [key for key in self._last_ns if not self.lives(key)]:
                del self._last_ns[key]
                yield key

    def lives(self, key: Any) -> bool:
        """Whether the time of a key is not over."""
        if self.ttl_ns is None or (last_ns := self._last_ns.get(key)) is None:
            return True
        return self.log_ns - last_ns < self.ttl_ns

    def forget(self, key: Any) -> None:
        """The state of a key has ended."""
        self._last_ns.pop(key, None)

    def written(self, keys: Iterable[Any]) -> bytes:
        """The clocks of these keys, to be stored."""
        if self.ttl_ns is None:
            return b""
        return np.array([self._last_ns[key] for key in keys], _STORED).tobytes()

    def set(self, keys: Collection[Any], data: bytes) -> None:
        """Takes over what `written` gave for these keys. ValueError when it did not."""
        if self.ttl_ns is not None:
            self._last_ns.update(zip(keys, self.read(data, len(keys)).tolist(), strict=True))


class SlotLifetimes(_Clock):
    """Of a table whose keys are slots of an array."""

    def __init__(self, ttl_ns: int | None) -> None:
        super().__init__(ttl_ns)
        self._last_ns = np.zeros(0, np.int64)

    def grow(self, slots: int) -> None:
        """There are so many slots now."""
        if self.ttl_ns is not None and len(self._last_ns) < slots:
            fresh = np.full(slots - len(self._last_ns), _NEVER_NS)
            self._last_ns = np.concatenate([self._last_ns, fresh])

    def renewed(self, slots: Array, log_ns: int) -> Array:
        """These slots have a message now. Returns those whose time was over before."""
        self.log_ns = log_ns
        over = slots[~self.lives(slots)]
        if self.ttl_ns is not None:
            self._last_ns[slots] = log_ns
        return over

    def lives(self, slots: Array) -> Array:
        """Whether the time of each slot is not over."""
        if self.ttl_ns is None:
            return np.ones(len(slots), np.bool_)
        lives: Array = self.log_ns - self._last_ns[slots] < self.ttl_ns
        return lives

    def forget(self, slots: Array) -> None:
        """The states of slots have ended."""
        if self.ttl_ns is not None:
            self._last_ns[slots] = _NEVER_NS

    def written(self, slots: Array) -> bytes:
        """The clocks of these slots, to be stored."""
        return b"" if self.ttl_ns is None else self._last_ns[slots].astype(_STORED).tobytes()

    def set(self, slots: Array, data: bytes) -> None:
        """Takes over what `written` gave for these slots. ValueError when it did not."""
        if self.ttl_ns is not None:
            self._last_ns[slots] = self.read(data, len(slots))
