"""The first values of a window, as words of its accumulators: what `Top` keeps.

    | how many there are | rank ... value ... | rank ... value ... | ... |

They are in the order of their ranks, the least first, of equal ones those that were added first. A rank is words that
are compared one after the other.
"""

from typing import Any

from bettong.machine_code import inlined, kernel

# Of a row of `Folds.tops`: which word, from the accumulators on, says how many there are; which row of what is loaded
# says whether a message is added (its rank and its value follow); how many there may be; how many words a rank has, and
# how many rank and value have.
WORD, LOADED, COUNT_MAX, RANK_WORDS, ENTRY_WORDS = range(5)


@kernel
def add_ranked(top: Any, words: Any, row: Any, at: Any, loaded: Any, first: Any, step: Any) -> None:
    """Adds a value to those of accumulators that begin at `at`.

    Its rank begins at `loaded[first]`; each word is a `step` behind the one before.
    """
    held, entry, begin = words[row, at + top[WORD]], top[ENTRY_WORDS], at + top[WORD] + 1
    index = held
    while index > 0 and _is_before(top, words, row, begin + (index - 1) * entry, loaded, first, step):
        index -= 1
    if index >= top[COUNT_MAX]:
        return
    held = min(held + 1, top[COUNT_MAX])
    words[row, at + top[WORD]] = held
    for word in range(begin + held * entry - 1, begin + (index + 1) * entry - 1, -1):
        words[row, word] = words[row, word - entry]
    for word in range(entry):
        words[row, begin + index * entry + word] = loaded[first + step * word]


@kernel
def join_ranked(top: Any, words: Any, row: Any, at: Any, newer: Any, newer_row: Any, newer_at: Any) -> None:
    """Adds the values of other accumulators, which are newer."""
    begin = newer_at + top[WORD] + 1
    for index in range(newer[newer_row, newer_at + top[WORD]]):
        add_ranked(top, words, row, at, newer[newer_row], begin + index * top[ENTRY_WORDS], 1)


@inlined
def _is_before(top: Any, words: Any, row: Any, at: Any, loaded: Any, first: Any, step: Any) -> Any:
    """Whether a loaded rank is less than the one at `at`."""
    for index in range(top[RANK_WORDS]):
        own, other = loaded[first + step * index], words[row, at + index]
        if own != other:
            return own < other
    return False
