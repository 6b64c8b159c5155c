"""Arrays as kernels take them: their types, and more room."""

import numpy as np

from bettong.frames.columns import Array


def in_both_types(array: Array) -> tuple[Array, Array]:
    """The array, and the same one read-only: what is called with both is compiled for whatever comes.

    Numba tells those that nobody may write, as those of frames are, from others.
    """
    read_only = array.view()
    read_only.flags.writeable = False
    return array, read_only


def with_rows(array: Array, rows: int) -> Array:
    """An array with more rows: those behind the ones it has are 0, and take no memory until they are used."""
    found = np.zeros((rows, *array.shape[1:]), array.dtype)
    found[: len(array)] = array
    return found
