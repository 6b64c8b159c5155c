"""The types that Numba sees in arrays: it tells those that nobody may write, as those of frames are, from others."""

from bettong.frames.columns import Array


def in_both_types(array: Array) -> tuple[Array, Array]:
    """The array, and the same one read-only: what is called with both is compiled for whatever comes."""
    read_only = array.view()
    read_only.flags.writeable = False
    return array, read_only
