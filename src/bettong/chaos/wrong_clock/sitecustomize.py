"""Python loads this module before a program, in a process whose clock may be set wrong (see `bettong.chaos.clock`).

It imports only the standard library: the program has imported nothing yet. `CHAOS_CLOCK` names a file of 8 bytes: the
offset in ns, little-endian.
"""

import mmap
import os
import struct
import time

_OFFSET = struct.Struct("<q")
_true_time, _true_time_ns = time.time, time.time_ns

with open(os.environ["CHAOS_CLOCK"], "rb") as _file:  # noqa: PTH123 - pathlib is a large import for every process
    _offset = mmap.mmap(_file.fileno(), _OFFSET.size, prot=mmap.PROT_READ)


def _wrong_time_ns() -> int:
    return _true_time_ns() + int(_OFFSET.unpack_from(_offset)[0])


def _wrong_time() -> float:
    return _true_time() + int(_OFFSET.unpack_from(_offset)[0]) / 1e9


time.time, time.time_ns = _wrong_time, _wrong_time_ns
