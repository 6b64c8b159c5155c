"""Kernels of `join_latest` over columns: which message of the table each row finds.

`held` says for each slot of the table where its message is: in its record (KEPT), or, for a number, in the row before
that number of the current batch; NONE without one. Numba compiles this when the library is first run, not for each
application.
"""

from typing import Any

import numpy as np

from bettong.machine_code import kernel
from bettong.worker.prefetching import AHEAD, CACHED_BYTES, prefetch
from bettong.worker.state.latest_table import KEPT, NONE

# What a row does: a message of the stream looks one up; one of the table renews it, deletes it, or its predicate
# failed.
FINDS, RENEWS, DELETES, FAILED = range(4)
# Indexes of `counts`: rows whose messages become the table's, slots whose messages are deleted, and slots that never
# had one.
RENEWED, ENDED, UNKNOWN = range(3)
# In `held` during a batch: the message was deleted, or the slot is recorded already.
_DELETED, _NOTED = -2, -3


@kernel
def look_up(slots: Any, does: Any, held: Any, found: Any) -> None:
    """Goes through the rows in order. `found`: filled with `held` of the slot, for rows that look up."""
    is_large, count = 8 * len(held) > CACHED_BYTES, np.uint64(len(slots))
    for row in range(count):
        if is_large and row + AHEAD < count and slots[row + AHEAD] >= 0:
            prefetch(held, np.uint64(slots[row + AHEAD]))
        if slots[row] < 0:
            found[row] = NONE
            continue
        slot = np.uint64(slots[row])
        if does[row] == FINDS:
            found[row] = NONE if held[slot] == _DELETED else held[slot]
        elif does[row] == RENEWS:
            held[slot] = row + 1
        elif does[row] == DELETES and held[slot] != NONE:
            held[slot] = _DELETED


@kernel
def settle(slots: Any, rows: Any, held: Any, renewed: Any, dropped: Any, counts: Any) -> None:
    """Called after the last row of a batch. `rows`: those of the table, which all have slots.

    `renewed`: filled with the rows whose messages are the newest of their slots. `dropped`: with slots whose message
    was deleted, and with those that never had one.
    """
    for index in range(len(rows)):
        slot = np.uint64(slots[rows[index]])
        if held[slot] > NONE:
            renewed[counts[RENEWED]] = held[slot] - 1
            counts[RENEWED] += 1
            held[slot] = KEPT
        elif held[slot] == NONE or held[slot] == _DELETED:
            kind = UNKNOWN if held[slot] == NONE else ENDED
            dropped[kind - ENDED, counts[kind]] = slot
            counts[kind] += 1
            held[slot] = _NOTED
