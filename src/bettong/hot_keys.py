"""The keys with the most messages of a partition, for its live record."""

from __future__ import annotations

import json
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HotKey:
    """A key as text, up to 200 characters. Its share of the messages is between `least` and `share`."""

    key: str
    share: float
    least: float


@dataclass(frozen=True, slots=True)
class HotKeys:
    """The hottest keys first, among about `messages` recent messages."""

    messages: int
    keys: tuple[HotKey, ...] = ()

    def to_text(self) -> str:
        """For a live record."""
        keys = [[each.key, round(each.share, 4), round(each.least, 4)] for each in self.keys]
        return json.dumps(
            {"messages": self.messages, "keys": keys}, separators=(",", ":"), ensure_ascii=False
        )

    @classmethod
    def parse(cls, text: str) -> HotKeys:
        """The inverse of `to_text`. Raises ValueError."""
        try:
            found = json.loads(text)
            keys = tuple(
                HotKey(_checked(key), float(share), float(least)) for key, share, least in found["keys"]
            )
            messages = int(found["messages"])
        except (TypeError, KeyError, OverflowError, RecursionError) as error:
            raise ValueError(f"no hot keys: {error!r}") from None
        if messages < 0 or not all(0 <= each.least <= each.share <= 1 for each in keys):
            raise ValueError(f"hot keys, expected shares from 0 to 1, got {text[:200]!r}")
        return cls(messages, keys)


NO_HOT_KEYS = HotKeys(0)


def _checked(key: object) -> str:
    if not isinstance(key, str):
        raise TypeError(f"a key that is {type(key).__name__}")
    return key
