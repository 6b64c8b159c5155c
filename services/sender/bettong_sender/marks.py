"""Marks of the frame that each source's thread is reading, in a file that outlives the process.

Each process has two files in a folder, `{pid}-{random}.marks` and `{pid}-{random}.words`. A process holds a lock on its
`.marks` file while it lives, so a process that can lock the file reads there what a dead one was reading. The file has
a slot of 1,024 bytes for each source:

    0  u64  1 while a frame is read   16  i64  message, UNNAMED while unknown   32    bytes of the origin
    8  u64  sequence                  24  u64  length of the origin             1016  u64  number of the mark

The mark with the highest number was set last. The file `refused` is touched when a frame is refused for such deaths.

The process that finds a dead one keeps its file, and locks it, until the deaths are stored in Redis: see `DeadProcess`.

The `.words` file holds what Python's `faulthandler` writes at a crash, or all threads' stacks when SIGPROF arrives.
"""

import contextlib
import faulthandler
import fcntl
import itertools
import mmap
import os
import signal
import stat
import struct
import uuid
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from bettong.config.sender import REFUSAL_SIGN
from bettong.errors import LocalError
from bettong.identifiers import Origin, SequenceNumber
from bettong_sender.deaths import UNNAMED, SenderDeath

_SLOT_BYTES = 1024
_HEAD = struct.Struct("<QQqQ")
_ROW = struct.Struct("<q")
_ROW_AT = 16
_NUMBER = struct.Struct("<Q")
_NUMBER_AT = _SLOT_BYTES - _NUMBER.size
# Longer names are not marked: they do not fit, and no legitimate client has one.
_ORIGIN_BYTES_MAX = _NUMBER_AT - _HEAD.size

# Files of dead processes that are kept while Redis takes no deaths; beyond it the oldest are removed. A frame that
# kills senders is refused after a few deaths.
_DEAD_MAX = 64

# Bytes that are read of a crash report; its first lines name the fault and where it happened.
_WORDS_MAX = 4000

# As faulthandler names them; it writes no numbers.
_SIGNALS = {
    "Segmentation fault": 11,
    "Aborted": 6,
    "Bus error": 7,
    "Floating-point exception": 8,
    "Floating point exception": 8,
    "Illegal instruction": 4,
}
# A report that begins so lists the threads' stacks, and names no fault.
_THREADS = ("Thread 0x", "Current thread 0x")
_KEPT = "it kept the interpreter's lock for longer than BETTONG_SENDER_LOCK_MS_MAX"
_NO_REPORT = "it left no crash report (os._exit, SIGKILL, or out of memory)"


class Slot:
    """One source's mark. Used by its thread alone. `numbers` counts the marks of all slots of the process."""

    def __init__(self, memory: memoryview, numbers: Iterator[int]) -> None:
        self._memory = memory
        self._numbers = numbers

    def begin(self, origin: Origin, sequence: SequenceNumber) -> None:
        """Marks that this frame is being read."""
        name = origin.encode()
        if len(name) <= _ORIGIN_BYTES_MAX:
            self._memory[_HEAD.size : _HEAD.size + len(name)] = name
            _NUMBER.pack_into(self._memory, _NUMBER_AT, next(self._numbers))
            _HEAD.pack_into(self._memory, 0, 1, sequence, UNNAMED, len(name))

    def touch(self, row: int) -> None:
        """Marks that this message of the frame is being read."""
        _NUMBER.pack_into(self._memory, _NUMBER_AT, next(self._numbers))
        _ROW.pack_into(self._memory, _ROW_AT, row)

    def end(self) -> None:
        """Marks that the frame was read."""
        self._memory[0] = 0


def ensure_private(folder: Path) -> None:
    """Creates the folder unless it exists. Raises LocalError when other users could write marks there.

    The folder must belong to this user, and its parent to this user or root.
    """
    mine = os.getuid()
    try:
        folder.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        above = {folder.parent.lstat().st_uid, folder.parent.stat().st_uid}
        if above <= {mine, 0}:
            folder.mkdir(exist_ok=True, mode=0o700)
            found = folder.lstat()
            if found.st_uid == mine and stat.S_ISDIR(found.st_mode):
                return
    except OSError as error:
        raise LocalError(
            f"{folder} cannot hold marks: {error}; choose another folder (BETTONG_SENDER_MARKS)"
        ) from None
    raise LocalError(
        f"{folder} or its parent belongs to another user, or it is no folder; choose another one"
        " (BETTONG_SENDER_MARKS)"
    )


class ReadingMarks:
    """The slots of this process. Until `close`, a crash of the process leaves a report in its `.words` file."""

    def __init__(self, folder: Path, slots: int) -> None:
        """`folder` exists: see `ensure_private`. Raises LocalError when it cannot be written."""
        name = f"{os.getpid()}-{uuid.uuid4().hex}"
        self._numbers = itertools.count(1)
        self._sign = folder / REFUSAL_SIGN
        self._files = [folder / f"{name}.new", folder / f"{name}.words"]
        try:
            self._marks = _create(self._files[0], max(1, slots) * _SLOT_BYTES)
            self._words = _create(self._files[1], 0)
            fcntl.flock(self._marks, fcntl.LOCK_EX)
            # Renamed once it is locked: other processes would take an unlocked `.marks` file for a dead one's.
            self._files[0] = self._files[0].rename(folder / f"{name}.marks")
            self._memory = memoryview(mmap.mmap(self._marks.fileno(), 0))
        except OSError as error:
            for path in self._files:
                path.unlink(missing_ok=True)
            raise LocalError(
                f"{folder} cannot hold marks: {error}; is there room? Else choose another folder (BETTONG_SENDER_MARKS)"
            ) from None
        faulthandler.enable(self._words)
        # After the report the signal ends the process as it would without: see `bettong_sender.lock_watch`.
        faulthandler.register(signal.SIGPROF, self._words, all_threads=True, chain=True)

    def slot(self, number: int) -> Slot:
        """The slot of that number."""
        return Slot(self._memory[number * _SLOT_BYTES : (number + 1) * _SLOT_BYTES], self._numbers)

    def note_refusal(self) -> None:
        """Touches `refused`: a frame was refused, or messages of it, for deaths. See `config.sender.refusal_sign`."""
        with contextlib.suppress(OSError):  # a full disk: the supervisor may then give up too early
            self._sign.touch(mode=0o600)

    def close(self) -> None:
        """Removes the files: the process ends without a crash."""
        faulthandler.unregister(signal.SIGPROF)
        faulthandler.disable()
        for path in self._files:
            path.unlink(missing_ok=True)
        self._words.close()
        self._marks.close()


@dataclass(frozen=True, slots=True)
class DeadProcess:
    """A process that died: the frames that it was reading, at most one for each source, and its crash report.

    No other process finds it until this process ends or releases it.
    """

    deaths: tuple[SenderDeath, ...]
    words: str
    _path: Path
    _file: BinaryIO

    def forget(self) -> None:
        """Removes its files: its deaths are stored elsewhere, or it has none. Never raises."""
        with contextlib.suppress(OSError):
            self._path.with_suffix(".words").unlink(missing_ok=True)
            self._path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Unlocks its file: the next process that searches finds it."""
        self._file.close()


def dead_processes(folder: Path) -> list[DeadProcess]:
    """Those that no other process has found. Removes the files of those that read no frame, and of the oldest ones."""
    found = []
    for path in sorted(folder.glob("*.marks")):
        with contextlib.suppress(OSError):  # another process was first
            file = _open_own(path)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not path.exists():
                    raise FileNotFoundError(path)
                words = _crash_report(path.with_suffix(".words"))
                deaths = tuple(_deaths_in(file.read(), path.stem, cause_of_death(words)))
                died_s = os.fstat(file.fileno()).st_mtime
            except OSError:
                file.close()
                raise
            found.append((died_s, DeadProcess(deaths, words, path, file)))
    ordered = [dead for _, dead in sorted(found, key=lambda each: each[0])]
    kept = [dead for dead in ordered if dead.deaths][-_DEAD_MAX:]
    for dead in ordered:
        if dead not in kept:
            dead.forget()
    return ordered


def cause_of_death(words: str) -> str:
    """Why a process ended, in a few words, by its crash report."""
    if words.startswith(_THREADS):
        return _KEPT
    first = words.partition("\n")[0].removeprefix("Fatal Python error: ").strip()
    if first in _SIGNALS:
        return f"signal {_SIGNALS[first]} ({first})"
    return first or _NO_REPORT


def _deaths_in(data: bytes, process: str, how: str) -> Iterator[SenderDeath]:
    busy = [
        start
        for start in range(0, len(data) - _SLOT_BYTES + 1, _SLOT_BYTES)
        if data[start] == 1 and _HEAD.unpack_from(data, start)[3] <= _ORIGIN_BYTES_MAX
    ]
    last = max(busy, default=0, key=lambda start: _NUMBER.unpack_from(data, start + _NUMBER_AT))
    for start in busy:
        _, sequence, row, length = _HEAD.unpack_from(data, start)
        name = Origin(data[start + _HEAD.size : start + _HEAD.size + length].decode(errors="replace"))
        yield SenderDeath(
            f"{process}/{start}",
            name,
            SequenceNumber(sequence),
            row,
            how,
            alone=len(busy) == 1,
            last=start == last,
        )


def _open_own(path: Path) -> BinaryIO:
    """Opens it to read. Raises OSError unless it is a regular file of this user; never waits for a pipe's writer."""
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
        file.close()
        raise PermissionError(f"{path} is not a regular file of this user")
    return file


def _crash_report(path: Path) -> str:
    try:
        with _open_own(path) as file:
            return file.read(_WORDS_MAX).decode(errors="replace")
    except OSError:
        return ""


def _create(path: Path, size: int) -> BinaryIO:
    file = path.open("x+b")
    try:
        path.chmod(0o600)
        if size:
            # Allocated now: on a full disk, a later write to the mapped file would end the process with SIGBUS.
            os.posix_fallocate(file.fileno(), 0, size)
    except OSError:
        file.close()
        raise
    return file
