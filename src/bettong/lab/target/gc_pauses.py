"""Pauses for garbage collection: each process of a run writes its own into a file.

Java by its GC log, Python by `bettong.garbage`, in the same format.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

# Such as: [1764193000123ms] GC(3) Pause Young (Allocation Failure) 30M->10M(118M) 3.123ms
_PAUSE = re.compile(r"\[(\d+)ms\].* Pause .* (\d+\.\d+)ms$", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class GcPause:
    """`target`: the process that paused, as in `bettong.chaos.spec.TARGETS`. `at_s`: the pause's end, Unix time."""

    target: str
    at_s: float
    lasting_ms: float


def logging_pauses(folder: Path, target: str) -> dict[str, str]:
    """Environment variables that make a process, and all that it starts, log their pauses into the folder, if Java."""
    return {"JDK_JAVA_OPTIONS": f"-Xlog:gc:file={folder}/{target}-%p.log:timemillis:filecount=0"}


def pauses(folder: Path) -> Iterator[GcPause]:
    """All pauses in the files of the folder."""
    for file in sorted(folder.glob("*-*.log")):
        target = file.stem.rpartition("-")[0]
        for at_ms, lasting_ms in _PAUSE.findall(file.read_text()):
            yield GcPause(target, int(at_ms) / 1e3, float(lasting_ms))
