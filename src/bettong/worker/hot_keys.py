"""Which keys have had most of a partition's messages recently: from a sample of these, in bounded memory.

Deterministic, without clock or random source, and no part of the state: a new worker knows nothing yet.
"""

from __future__ import annotations

from typing import Any

from bettong.frames.key_values import key_text
from bettong.hot_keys import HotKey, HotKeys
from bettong.schema.key_types import KeyPart, KeyValue
from bettong.worker.batch import FrameKeys
from bettong.worker.space_saving import SpaceSaving

# One message in _STRIDE is sampled; a frame counts as 64 messages at most, for those of a large one pass at 10 ns each.
# A sample takes 4 to 9 us, so it is 0.4 us a frame at most, beside 40 us and more for its fold. A new worker samples
# more often, and half as often after each 64 samples: it knows something after 8,000 messages.
_STRIDE_FIRST, _STRIDE = 128, 2048
_COUNTED_MAX = 64
# A share of 2 % is always found, and is too high by 2 % at most. Text of a key beyond that length is cut.
_CAPACITY = 50
_KEY_CHARACTERS_MAX = 200
# Shares are of half this number of samples or more: a share of one half is right to 3 %, as a rule.
_SAMPLES_A_ROUND = 512
# A new worker reports nothing before it has this many.
_SAMPLES_MIN = 64
_NAMED_MAX = 3


class KeySample:
    """The hot keys of one partition. Call `note` and `found` in one thread."""

    __slots__ = ("_before", "_left", "_newest", "_random", "_samples", "_stride")

    def __init__(self) -> None:
        self._newest: SpaceSaving[KeyValue] = SpaceSaving(_CAPACITY)
        self._before: SpaceSaving[KeyValue] | None = None
        self._samples = 0
        self._random = 1
        self._stride = self._left = _STRIDE_FIRST

    def note(self, keys: FrameKeys, messages: int) -> None:
        """Samples the keys of a frame that was folded. The weight of a sample makes up for how seldom there is one."""
        counted = min(messages, _COUNTED_MAX)
        self._left -= counted
        while self._left < 0:
            self._sample(keys, self._draw(messages), self._stride * messages // counted)
            # At varying distances: keys may come in turns.
            self._left += 1 + self._draw(2 * self._stride - 1)

    def found(self) -> HotKeys:
        """The heaviest keys recently. None in a new worker, or where a function computes the keys."""
        # A round that has just begun says little: then the one before it is used.
        newest, before = self._newest, self._before
        of = newest if before is None or 2 * self._samples >= _SAMPLES_A_ROUND else before
        if of is newest and self._samples < _SAMPLES_MIN:
            return HotKeys(0)
        return HotKeys(
            of.total,
            tuple(
                HotKey(_text(each.key), each.weight / of.total, (each.weight - each.error) / of.total)
                for each in of.heaviest(_NAMED_MAX)
            ),
        )

    def _sample(self, keys: FrameKeys, row: int, weight: int) -> None:
        key = _shortened(keys.value(row))
        if key is None:
            return
        self._newest.add(key, weight)
        self._samples += 1
        if self._stride < _STRIDE and self._samples % _SAMPLES_MIN == 0:
            self._stride *= 2
        if self._samples >= _SAMPLES_A_ROUND:
            self._before, self._newest, self._samples = self._newest, SpaceSaving(_CAPACITY), 0

    def _draw(self, below: int) -> int:
        """The next number of a fixed sequence, from 0 on (Lehmer's, with the factor of Park and Miller, CACM 1988)."""
        self._random = self._random * 48271 % 0x7FFFFFFF
        return self._random % below


def _shortened(key: Any) -> KeyValue | None:
    """A key, shortened if long; None for none, or where a key function returned another type than for the sender."""
    if isinstance(key, int):
        return key
    if isinstance(key, str | bytes):
        return key if len(key) <= _KEY_CHARACTERS_MAX else key[:_KEY_CHARACTERS_MAX]
    if not isinstance(key, tuple) or not all(isinstance(part, KeyPart) for part in key):
        return None
    is_short = all(isinstance(part, int) or len(part) <= _KEY_CHARACTERS_MAX for part in key)
    return key if is_short else _text(key)


def _text(key: KeyValue) -> str:
    return key_text(key)[:_KEY_CHARACTERS_MAX]
