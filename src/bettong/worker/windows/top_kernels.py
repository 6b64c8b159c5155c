"""Kernels of `Top`: the first values of a window, as words of its accumulators.

    | how many there are | rank ... value ... | rank ... value ... | ... |

Entries are sorted by rank, the least first; equal ranks in the order in which they were added. The words of a rank are
compared one after the other.
"""

from typing import Any

from bettong.machine_code import inlined, kernel

# The columns of `Folds.tops`: the accumulator word that counts the entries; the loaded row that says whether a message
# is added (its rank and its value follow); how many entries there may be; how many words a rank has, and how many an
# entry.
WORD, LOADED, COUNT_MAX, RANK_WORDS, ENTRY_WORDS = range(5)


@kernel
def add_ranked(top: Any, words: Any, row: Any, at: Any, loaded: Any, first: Any, step: Any) -> None:
    """Adds a value to the accumulators that begin at `at`.

    Its rank begins at `loaded[first]`; its words are `step` apart.
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
    """Adds the values of newer accumulators."""
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
