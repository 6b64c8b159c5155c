"""Segments of an array, each of one owner: a power of two of rows, or of words where the array has one dimension.

A segment is a number: 64 times its start, plus the power; 0 stands for none. A free one holds the start of the next
free one of its size, -1 for none, in its first word of `links`: all words of the array, or a column of its rows.
"""

from typing import Any

import numpy as np

from bettong.frames.columns import Array
from bettong.machine_code import kernel

# No array has 2**40 rows.
_POWERS = 40


def no_segments() -> tuple[Array, Array]:
    """As kernels take them: by power, where the first free segment begins; how many rows were ever part of one."""
    return np.full(_POWERS, -1, np.int64), np.zeros(1, np.int64)


@kernel
def allocate_segment(power: Any, links: Any, spare: Any, used: Any) -> Any:
    """Allocates a segment of 2**power rows, with what they held; returns 0 where there are too few."""
    start = spare[power]
    if start >= 0:
        spare[power] = links[start]
    elif used[0] + (1 << power) <= len(links):
        start = used[0]
        used[0] += 1 << power
    else:
        return 0
    return (start << 6) + power


@kernel
def free_segment(segment: Any, links: Any, spare: Any) -> None:
    """Frees a segment, if it is one."""
    if segment:
        links[segment >> 6] = spare[segment & 63]
        spare[segment & 63] = segment >> 6
