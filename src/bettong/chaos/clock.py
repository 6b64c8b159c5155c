"""Sets the wall clock of one Python process wrong while it runs.

The process's own code is unchanged: before the program, Python loads `wrong_clock/sitecustomize.py`, found by
PYTHONPATH, which adds an offset to `time.time` and `time.time_ns`. `time.monotonic` stays right, as on a machine whose
clock is set; so do clocks that C code reads by itself. libfaketime would change those too, but with CPython 3.11 it
breaks `time.sleep`.
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
        """Creates `file`, which must exist as long as the process."""
        file.write_bytes(_OFFSET.pack(0))
        self._file = file

    @property
    def environment(self) -> dict[str, str]:
        """The environment variables to start the process with."""
        before = os.environ.get("PYTHONPATH")
        folder = str(Path(__file__).with_name("wrong_clock"))
        return {
            "PYTHONPATH": f"{folder}{os.pathsep}{before}" if before else folder,
            "CHAOS_CLOCK": str(self._file),
        }

    def set(self, offset_s: float) -> None:
        """Sets how far the clock is ahead of the true time, from now on; also after a restart of the process."""
        with self._file.open("r+b") as file, mmap.mmap(file.fileno(), _OFFSET.size) as offset:
            _OFFSET.pack_into(offset, 0, round(offset_s * 1e9))
