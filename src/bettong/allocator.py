"""How the C library's allocator gives memory back."""

import ctypes

# Their numbers are of malloc.h; what they mean: mallopt(3).
_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD, _M_ARENA_MAX = -1, -3, -8

# glibc's own first value. Left alone it rises with each large block that is freed, up to 32 MiB, and blocks below it
# come from heaps, where one small block that lives on keeps all beneath it. Setting it keeps it where it is.
_MMAP_BYTES_MIN = 128 * 1024
_TRIM_BYTES = 256 * 1024
# By default eight a core, each with memory of its own that nobody uses when its threads have ended.
_ARENAS_MAX = 2


def give_memory_back() -> None:
    """Large blocks go back to the system when they are freed. Call it before threads start.

    For a process whose threads come and go with their buffers; one that reads large blocks all the time loses some
    speed by it. Without effect where the C library has no such settings (it is glibc that needs them).
    """
    mallopt = getattr(ctypes.CDLL(None), "mallopt", None)
    if mallopt is not None:
        mallopt(_M_MMAP_THRESHOLD, _MMAP_BYTES_MIN)
        mallopt(_M_TRIM_THRESHOLD, _TRIM_BYTES)
        mallopt(_M_ARENA_MAX, _ARENAS_MAX)
