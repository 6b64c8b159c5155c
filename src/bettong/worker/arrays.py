"""Arrays for kernels: as both of the types that Numba gives an array, and with more rows."""

import numpy as np

from bettong.frames.columns import Array


def in_both_types(array: Array) -> tuple[Array, Array]:
    """The array, and a read-only view of it: what is called with both is compiled for either.

    To Numba a read-only array, as those of frames are, is of another type.
    """
    read_only = array.view()
    read_only.flags.writeable = False
    return array, read_only


def with_rows(array: Array, rows: int) -> Array:
    """A longer copy of an array: the added rows are 0, and take no memory until they are used."""
    found = np.zeros((rows, *array.shape[1:]), array.dtype)
    found[: len(array)] = array
    return found
