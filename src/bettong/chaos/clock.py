"""The wall clock of one Python process, made wrong while it runs.

Nothing of this is in the process's own code: before the program, Python loads `wrong_clock/sitecustomize.py`, found by
PYTHONPATH, which adds an offset to `time.time` and `time.time_ns`. What measures durations (`time.monotonic`) stays
right, as on a machine whose clock is set; so do the clocks that C code reads by itself. libfaketime would reach those
too, but with CPython 3.11 it breaks `time.sleep`.
"""

from __future__ import annotations

import mmap
import os
import struct
from pathlib import Path

_OFFSET = struct.Struct("<q")


class MovableClock:
    """The clock of one process: give it `environment` at its start, then `set` moves it."""

    def __init__(self, file: Path) -> None:
        """`file` is made; it must live as long as the process."""
        file.write_bytes(_OFFSET.pack(0))
        self._file = file

    @property
    def environment(self) -> dict[str, str]:
        """The process's variables."""
        before = os.environ.get("PYTHONPATH")
        folder = str(Path(__file__).with_name("wrong_clock"))
        return {
            "PYTHONPATH": f"{folder}{os.pathsep}{before}" if before else folder,
            "CHAOS_CLOCK": str(self._file),
        }

    def set(self, offset_s: float) -> None:
        """How far the clock is ahead of the true time, from now on; also after a restart of the process."""
        with self._file.open("r+b") as file, mmap.mmap(file.fileno(), _OFFSET.size) as offset:
            _OFFSET.pack_into(offset, 0, round(offset_s * 1e9))
