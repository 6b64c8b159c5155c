"""Which keys have most of a partition's messages, of late: by a sample of these, in bounded memory.

It reads no clock and draws nothing by chance, and is no part of the state: a worker that begins anew knows nothing yet.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from bettong.frames.key_values import key_text
from bettong.hot_keys import HotKey, HotKeys
from bettong.schema.key_types import KeyPart
from bettong.worker.batch import FrameKeys
from bettong.worker.space_saving import SpaceSaving

# One message in so many is looked at: a look takes some 2 us, so 0.01 us a message.
_STRIDE = 256
# Of a large frame so many: its messages go by at 10 ns each.
_LOOKS_MAX = 4
# A share of 2 % is found in any case, and is too high by 2 % at most. Text of a key beyond that is cut.
_CAPACITY = 50
_KEY_CHARACTERS_MAX = 200
# Shares are of so many looks, and of up to as many before them: then a share of a half is right to 3 %, as a rule.
_LOOKS_A_ROUND = 1024
_NAMED_MAX = 3


class KeySample:
    """Of one partition. `note` and `found` are for one thread."""

    __slots__ = ("_before", "_looks", "_newest", "_random", "_rows_left")

    def __init__(self) -> None:
        self._newest: SpaceSaving[Any] = SpaceSaving(_CAPACITY)
        self._before: SpaceSaving[Any] | None = None
        self._looks = 0
        self._random = 1
        self._rows_left = _STRIDE // 2

    def note(self, keys: FrameKeys, messages: int) -> None:
        """So many messages of a frame were folded. Each of its rows is looked at with the same likelihood."""
        if messages > _LOOKS_MAX * _STRIDE:
            step = messages // _LOOKS_MAX
            for begin in range(0, _LOOKS_MAX * step, step):
                self._look(keys, begin + self._draw(step), step)
            return
        self._rows_left -= messages
        while self._rows_left < 0:
            self._look(keys, messages + self._rows_left, _STRIDE)
            # Not every so many: messages may come in turns.
            self._rows_left += 1 + self._draw(2 * _STRIDE - 1)

    def found(self) -> HotKeys:
        """The heaviest keys of late. They may be none: before the first look, and where a function gives the key."""
        # A round that has just begun says little: then the one before counts alone.
        newest, before = self._newest, self._before
        of = newest if before is None or 2 * self._looks >= _LOOKS_A_ROUND else before
        return HotKeys(
            of.total,
            tuple(
                HotKey(_text(each.key), each.count / of.total, (each.count - each.error) / of.total)
                for each in of.heaviest(_NAMED_MAX)
            ),
        )

    def _look(self, keys: FrameKeys, row: int, weight: int) -> None:
        key = keys.value(row)
        if not _is_key(key):
            return
        self._newest.add(key if not _is_long(key) else _text(key), weight)
        self._looks += 1
        if self._looks >= _LOOKS_A_ROUND:
            self._before, self._newest, self._looks = self._newest, SpaceSaving(_CAPACITY), 0

    def _draw(self, below: int) -> int:
        """A number from 0 on, the next of a fixed row (Lehmer's, with the factor of Park and Miller, CACM 1988)."""
        self._random = self._random * 48271 % 0x7FFFFFFF
        return self._random % below


def _is_key(key: Any) -> bool:
    """Not where there is none, and not what a function gives now that gave a key when the message was partitioned."""
    parts: Sequence[Any] = key if isinstance(key, tuple) else (key,)
    return all(isinstance(part, KeyPart) for part in parts)


def _is_long(key: Any) -> bool:
    parts: Sequence[Any] = key if isinstance(key, tuple) else (key,)
    return any(isinstance(part, str | bytes) and len(part) > _KEY_CHARACTERS_MAX for part in parts)


def _text(key: Any) -> str:
    return key_text(key)[:_KEY_CHARACTERS_MAX]
