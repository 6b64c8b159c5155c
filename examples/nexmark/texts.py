"""Texts of generated events: names, channels with their urls, and letters at random."""

from functools import lru_cache
from typing import Any, TypeAlias

import numpy as np

Array: TypeAlias = np.ndarray[Any, Any]

FIRST_NAMES = np.array(
    ["Ada", "Bela", "Carl", "Dora", "Emil", "Frida", "Georg", "Hanna", "Ivan", "Jana", "Kurt"]
)
LAST_NAMES = np.array(["Adler", "Baum", "Clark", "Dorn", "Ebner", "Fuchs", "Gruber", "Haas", "Irving"])
CITIES = np.array(["Boise", "Eugene", "Fresno", "Helena", "Laramie", "Mesa", "Olympia", "Salem", "Spokane"])
STATES = np.array(["AZ", "CA", "ID", "MT", "OR", "WA", "WY"])

FOUR_DIGITS = np.array([f"{number:04}" for number in range(10_000)])

HOT_CHANNELS = ("Google", "Facebook", "Baidu", "Apple")
CHANNELS = np.array([*HOT_CHANNELS, *(f"channel-{number}" for number in range(10_000))])

_LETTERS = np.frombuffer(b"abcdefghijklmnopqrstuvwxyz ", "u1")
_TEXT_BYTES = 2**16


def pick(words: Array, draws: Array) -> Array:
    """One of the words for each random number."""
    found: Array = words[draws % np.uint64(len(words))]
    return found


def random_text(draws: Array, shortest: int, longest: int) -> Array:
    """A stretch of letters for each random number, of which the low bits say where it begins, others how long it is."""
    begins = (draws % np.uint64(_TEXT_BYTES - longest)).astype(np.int64)
    lengths = shortest + (draws >> np.uint64(32)) % np.uint64(longest - shortest + 1)
    letters = np.lib.stride_tricks.sliding_window_view(_text(), longest)[begins]
    letters = np.where(np.arange(longest) < lengths[:, None], letters, 0).astype("u1")
    # A space at the end of a text would be part of it; NUL is not.
    found: Array = letters.view(f"S{longest}").reshape(-1).astype(str)
    return found


@lru_cache(maxsize=1)
def _text() -> Array:
    """The letters that all texts are cut from."""
    draws = np.random.Philox(key=0).random_raw(_TEXT_BYTES)
    found: Array = _LETTERS[draws % np.uint64(len(_LETTERS))]
    return found


@lru_cache(maxsize=4)
def urls(seed: int) -> Array:
    """The url of each channel: three folders, and the channel's number in nine of ten that are not hot."""
    draws = np.random.Philox(key=seed, counter=2**200).random_raw(len(CHANNELS) * 5).reshape(-1, 5)
    found = []
    for channel, row in enumerate(draws.tolist()):
        folders = "/".join(f"{number % 16**4:04x}" for number in row[:3])
        is_known = channel >= len(HOT_CHANNELS) and row[3] % 10 > 0
        number = f"&channel_id={row[4] % 2**31}" if is_known else ""
        found.append(f"https://auctions.example/{folders}/item.htm?query=1{number}")
    return np.array(found)
