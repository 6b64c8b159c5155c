"""Which frame each source's thread is reading, in a file that outlives the process.

A folder holds, for each process, `{pid}-{random}.marks` and `.words`. The first is locked as long as the process
lives, so a process that can lock it finds what a dead one was reading; it has a slot of 1,024 bytes a source:

    0  u64  1 while a frame is read   16  i64  message, UNNAMED while it is not known   32    bytes of the origin
    8  u64  sequence                  24  u64  length of the origin                     1016  u64  number of the mark

The mark with the highest number was set last. A file `refused` is touched when a frame was refused for such deaths.

The file of a dead process is kept, locked by who has found it, until others know what it says: see `DeadProcess`.

The second holds what Python's `faulthandler` says of a crash, or of where each thread was when SIGPROF came.
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
# Longer names are not marked: they do not fit, and come from no legitimate client.
_ORIGIN_BYTES_MAX = _NUMBER_AT - _HEAD.size

# Dead processes that are kept in mind while nobody else can be told; beyond it the first ones are forgotten. A frame
# that kills is refused after a few.
_DEAD_MAX = 64

# Of what a crash said; the first lines say the fault and where it happened.
_WORDS_MAX = 4000

# As faulthandler has them, which says no numbers.
_SIGNALS = {
    "Segmentation fault": 11,
    "Aborted": 6,
    "Bus error": 7,
    "Floating-point exception": 8,
    "Floating point exception": 8,
    "Illegal instruction": 4,
}
# Then it says where threads were, and no fault.
_THREADS = ("Thread 0x", "Current thread 0x")
_KEPT = "it kept the interpreter's lock for longer than BETTONG_SENDER_LOCK_MS_MAX"
_SILENT = "it ended without a word (os._exit, SIGKILL, or out of memory)"


class Slot:
    """One source's mark. Used by its thread alone. `numbers` gives ever higher ones, to all slots of the process."""

    def __init__(self, memory: memoryview, numbers: Iterator[int]) -> None:
        self._memory = memory
        self._numbers = numbers

    def begin(self, origin: Origin, sequence: SequenceNumber) -> None:
        """From now on this frame is read."""
        name = origin.encode()
        if len(name) <= _ORIGIN_BYTES_MAX:
            self._memory[_HEAD.size : _HEAD.size + len(name)] = name
            _NUMBER.pack_into(self._memory, _NUMBER_AT, next(self._numbers))
            _HEAD.pack_into(self._memory, 0, 1, sequence, UNNAMED, len(name))

    def touch(self, row: int) -> None:
        """From now on this message of it."""
        _NUMBER.pack_into(self._memory, _NUMBER_AT, next(self._numbers))
        _ROW.pack_into(self._memory, _ROW_AT, row)

    def end(self) -> None:
        """It is read."""
        self._memory[0] = 0


def own(folder: Path) -> None:
    """Makes the folder, unless it is there. Raises LocalError when others could lay marks there.

    So it is this user's own, and the one above this user's or root's.
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
        raise LocalError(f"{folder} cannot hold marks: {error} (BETTONG_SENDER_MARKS)") from None
    raise LocalError(
        f"{folder} is another user's, or no folder; choose another folder (BETTONG_SENDER_MARKS)"
    )


class ReadingMarks:
    """The slots of this process. A context manager; while it is open, crashes of the process leave words."""

    def __init__(self, folder: Path, slots: int) -> None:
        """`folder` is there: see `own`. Raises LocalError when it cannot be used."""
        name = f"{os.getpid()}-{uuid.uuid4().hex}"
        self._numbers = itertools.count(1)
        self._sign = folder / REFUSAL_SIGN
        self._files = [folder / f"{name}.new", folder / f"{name}.words"]
        try:
            self._marks = _created(self._files[0], max(1, slots) * _SLOT_BYTES)
            self._words = _created(self._files[1], 0)
            fcntl.flock(self._marks, fcntl.LOCK_EX)
            # Under its name only when it is locked: nobody takes it for a dead one's.
            self._files[0] = self._files[0].rename(folder / f"{name}.marks")
            self._memory = memoryview(mmap.mmap(self._marks.fileno(), 0))
        except OSError as error:
            for path in self._files:
                path.unlink(missing_ok=True)
            raise LocalError(
                f"{folder} cannot hold marks: {error}; is there room? Else choose another folder (BETTONG_SENDER_MARKS)"
            ) from None
        faulthandler.enable(self._words)
        # Then the signal ends the process as it would have: see `bettong_sender.lock_watch`.
        faulthandler.register(signal.SIGPROF, self._words, all_threads=True, chain=True)

    def slot(self, number: int) -> Slot:
        """The slot of that number."""
        return Slot(self._memory[number * _SLOT_BYTES : (number + 1) * _SLOT_BYTES], self._numbers)

    def note_refusal(self) -> None:
        """A frame was refused, or messages of it, for senders died over it: see `config.sender.refusal_sign`."""
        with contextlib.suppress(OSError):  # a full disk; then somebody may give this sender up too early
            self._sign.touch(mode=0o600)

    def close(self) -> None:
        """Ends well: nothing is left."""
        faulthandler.unregister(signal.SIGPROF)
        faulthandler.disable()
        for path in self._files:
            path.unlink(missing_ok=True)
        self._words.close()
        self._marks.close()


@dataclass(frozen=True, slots=True)
class DeadProcess:
    """A process that died: the frame that it was reading, once for each source that had one, and its last words.

    Nobody else finds it until this process ends or releases it.
    """

    deaths: tuple[SenderDeath, ...]
    words: str
    _path: Path
    _file: BinaryIO

    def forget(self) -> None:
        """It is known elsewhere, or of no use: its files are removed. Never raises."""
        with contextlib.suppress(OSError):
            self._path.with_suffix(".words").unlink(missing_ok=True)
            self._path.unlink(missing_ok=True)
        self.release()

    def release(self) -> None:
        """Leaves it to whoever looks next."""
        self._file.close()


def dead_processes(folder: Path) -> list[DeadProcess]:
    """Those that nobody else has found. What was reading no frame is forgotten, and the oldest beyond a bound."""
    found = []
    for path in sorted(folder.glob("*.marks")):
        with contextlib.suppress(OSError):  # another process was first
            file = _opened(path)
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                if not path.exists():
                    raise FileNotFoundError(path)
                words = _words(path.with_suffix(".words"))
                deaths = tuple(_read(file.read(), path.stem, cause_of_death(words)))
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
    """What a process's last words say of its end, in a few."""
    if words.startswith(_THREADS):
        return _KEPT
    first = words.partition("\n")[0].removeprefix("Fatal Python error: ").strip()
    if first in _SIGNALS:
        return f"signal {_SIGNALS[first]} ({first})"
    return first or _SILENT


def _read(data: bytes, process: str, how: str) -> Iterator[SenderDeath]:
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


def _opened(path: Path) -> BinaryIO:
    """For reading. Raises OSError unless it is a file of this user's; never waits for somebody else to open it."""
    file = os.fdopen(os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb")
    found = os.fstat(file.fileno())
    if not stat.S_ISREG(found.st_mode) or found.st_uid != os.getuid():
        file.close()
        raise PermissionError(f"{path} is no file of this user's")
    return file


def _words(path: Path) -> str:
    try:
        with _opened(path) as file:
            return file.read(_WORDS_MAX).decode(errors="replace")
    except OSError:
        return ""


def _created(path: Path, size: int) -> BinaryIO:
    file = path.open("x+b")
    try:
        path.chmod(0o600)
        if size:
            # Room that is not there would end the process when it is written: it is taken now.
            os.posix_fallocate(file.fileno(), 0, size)
    except OSError:
        file.close()
        raise
    return file
