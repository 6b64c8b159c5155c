"""Configures how the C library's allocator returns memory to the system."""

import ctypes

# Numbers from malloc.h; for their meaning see mallopt(3).
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8

# glibc's initial value. By default it grows with each large block that is freed, up to 32 MiB, and smaller blocks come
# from heaps, where one small live block keeps all below it. Setting it disables that growth.
_MMAP_BYTES_MIN = 128 * 1024
_TRIM_BYTES = 256 * 1024
# The default is eight a core, each with its own memory, which is unused once its threads have ended.
_ARENAS_MAX = 2


def give_memory_back() -> None:
    """Makes freed large blocks return to the system at once. Call it before threads start.

    For a process whose threads, and their buffers, are short-lived; one that constantly reads large blocks loses some
    speed. No effect unless the C library has these settings, as glibc has, which needs them.
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES_MIN)
        mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)
        mallopt(_M_ARENA_MAX, _ARENAS_MAX)
