"""Results in files, each message exactly once.

    <folder>/.lock                          held while a receiver writes here
    <folder>/<sink>/00003.jsonl             results of partition 3 (`.bin` for a sink with an encoder)
    <folder>/<sink>/00003.position          its position: offset, delivery table, length of the file

One file per partition, because order is per key and a key stays in its partition: a single file would interleave
partitions in an order that no second run repeats, so no two runs would write the same bytes.

A position is written atomically, after the results before it are on the disk (fsync). After a crash a file is as
long as its position says, or longer; the next connector that opens it truncates the excess and reads it again from
the log, so after any number of crashes the file has the bytes of a run without one. Positions that moved are written
every `SYNC_INTERVAL_S`: that bounds how much is read again; nothing is lost.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from pathlib import Path

from bettong_receiver.background import Background
from bettong_receiver.connectors import durable
from bettong_receiver.delivery.connector import (
    ConnectorUnavailableError,
    MovingPosition,
    Refused,
    SinkBatch,
    SinkConnector,
)
from bettong_receiver.errors import PositionError, SinkError
from bettong_receiver.formats import SinkFormat
from bettong_receiver.positions import PositionKey, decode, encode
from bettong_receiver.progress import DeliveryProgress, SinkPartition

# Two fsyncs for each partition that moved: 16 partitions take 4 ms on a local disk, 0.3 s on a slow network volume.
SYNC_INTERVAL_S = 0.5
# A sync that takes longer is abandoned when the connector closes; the previous positions stay valid.
_CLOSE_WAIT_S = 10.0
# How long the next connector waits for it. The task retries; a slow disk must be reported within two seconds.
_OPEN_WAIT_S = 1.0


class FileConnector(SinkConnector[bytes]):
    """See SinkConnector. Results are written at once; positions are synced on a background thread.

    Every method raises SinkError on a disk error.
    """

    def __init__(
        self,
        folder: Path,
        application: str,
        formats: Mapping[str, SinkFormat],
        *,
        background: Background,
        monotonic_s: Callable[[], float],
    ) -> None:
        """`formats`: the format of each sink to deliver. `background`: shared by successive connectors to a folder."""
        self._folder = folder
        self._application = application
        self._formats = formats
        self._monotonic_s = monotonic_s
        self._files: dict[SinkPartition, _File] = {}
        self._unsynced: dict[SinkPartition, MovingPosition] = {}
        self._next_sync_s = monotonic_s()
        self._background = background
        # The folder's lock and the files, while they are open.
        self._descriptors: ExitStack | None = None
        self._abandoned = False

    def open(self, beginnings: Mapping[SinkPartition, int]) -> dict[SinkPartition, bytes | None]:
        """See SinkConnector. Truncates each file to the length in its position; creates both when neither exists.

        Raises PositionError, naming file and remedy, when file and position do not match; SinkError when another
        receiver writes to the folder; ConnectorUnavailableError while a sync of the previous connector goes on.
        """
        folder = self._folder
        if not self._background.finish(_OPEN_WAIT_S):
            raise ConnectorUnavailableError(
                f"file sink: {folder}: a sync that was begun earlier has not ended; is the disk slow?"
            )
        try:
            with ExitStack() as undo:
                folder.mkdir(parents=True, exist_ok=True)
                undo.callback(os.close, durable.lock(folder, remedy="give each its own BETTONG_RECEIVER_DIR"))
                for each, beginning in beginnings.items():
                    (folder / each.sink).mkdir(exist_ok=True)
                    key = PositionKey(self._application, *each)
                    extension = self._formats[each.sink].extension
                    file = _open(folder / each.sink, key, extension, beginning)
                    undo.callback(os.close, file.descriptor)
                    self._files[each] = file
                for sink in {sink for sink, _ in beginnings}:
                    durable.sync_folder(folder / sink)
                self._descriptors = undo.pop_all()
        except OSError as error:
            raise _sink_error("open", folder, error) from None
        return {key: file.opened_at for key, file in self._files.items()}

    def deliver(self, batches: Sequence[SinkBatch[bytes]]) -> Refused:
        """See SinkConnector. Readers of the files see the messages at once; `flush` syncs the positions later."""
        for batch in batches:
            content = self._formats[batch.key.sink].content
            self._files[batch.key].write(b"".join([content(each.messages) for each in batch.frames]))
            self._unsynced[batch.key] = batch.moving
        return {}

    def flush(self) -> None:
        """Starts to sync positions when the interval has passed and the previous sync has ended."""
        now_s = self._monotonic_s()
        if now_s >= self._next_sync_s and self._idle():
            self._sync()
            self._next_sync_s = now_s + SYNC_INTERVAL_S

    def finish(self) -> None:
        """Syncs all positions. A sync that takes longer than 10 s is abandoned: the previous position stays valid."""
        try:
            if self._background.finish(_CLOSE_WAIT_S):
                self._sync()
                self._background.finish(_CLOSE_WAIT_S)
        except OSError as error:
            raise SinkError(f"file sink: cannot sync: {error}") from None

    def close(self) -> None:
        """See SinkConnector. A sync that takes longer than 10 s keeps the folder locked until it ends."""
        if (descriptors := self._descriptors) is None:
            return
        self._descriptors = None

        def release() -> None:
            with suppress(OSError):
                descriptors.close()

        try:
            has_ended = self._background.finish(_CLOSE_WAIT_S)
        except OSError:
            has_ended = True
        if has_ended:
            release()
        else:
            self._abandoned = True
            self._background.start(release)

    def _idle(self) -> bool:
        try:
            return self._background.idle()
        except OSError as error:
            raise SinkError(f"file sink: cannot sync: {error}; free the disk and start again") from None

    def _sync(self) -> None:
        """Syncs files and positions in the background; encodes the positions now, before later deliveries move them."""
        if not self._unsynced:
            return
        jobs = [
            (file.descriptor, file.position_path, moving.encode(length_bytes=file.length_bytes))
            for key, moving in self._unsynced.items()
            for file in (self._files[key],)
        ]
        self._unsynced.clear()

        def sync() -> None:
            for descriptor, path, position in jobs:
                if not self._abandoned:
                    os.fdatasync(descriptor)
                if not self._abandoned:
                    durable.replace(path, position)

        self._background.start(sync)


@dataclass(slots=True)
class _File:
    """The results of one partition. `length_bytes`: current size. `opened_at`: the position found when opening."""

    path: Path
    position_path: Path
    descriptor: int
    length_bytes: int
    opened_at: bytes

    def write(self, content: bytes) -> None:
        view = memoryview(content)
        try:
            while view:
                view = view[os.write(self.descriptor, view) :]
        except OSError as error:
            raise _sink_error("write", self.path, error) from None
        self.length_bytes += len(content)


def _open(folder: Path, key: PositionKey, extension: str, beginning: int) -> _File:
    path = folder / f"{key.partition:05}.{extension}"
    position_path = path.with_suffix(".position")
    size_bytes = path.stat().st_size if path.exists() else 0
    if position_path.exists():
        try:
            position = position_path.read_bytes()
            _, length_bytes = decode(key, position)
        except PositionError as error:
            raise PositionError(f"{position_path}: {error}; {_remedy(position_path, path)}") from None
    elif size_bytes:
        raise PositionError(f"{path} has no {position_path.name} beside it; {_remedy(position_path, path)}")
    else:
        position, length_bytes = encode(key, DeliveryProgress.fresh(beginning)), 0
        durable.replace(position_path, position)
    if size_bytes < length_bytes:
        raise PositionError(
            f"{path} has {size_bytes} bytes, but {length_bytes} were delivered by {position_path.name};"
            f" {_remedy(position_path, path)}"
        )
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    os.ftruncate(descriptor, length_bytes)
    return _File(path, position_path, descriptor, length_bytes, position)


def _remedy(position_path: Path, path: Path) -> str:
    return (
        f"restore both from one backup, or delete {position_path.name} and {path.name}:"
        " they are rewritten from the oldest record in the log"
    )


def _sink_error(doing: str, path: Path, error: OSError) -> SinkError:
    return SinkError(
        f"file sink: cannot {doing} {path}: {error.strerror or error};"
        " fix that and start the receiver again: it resumes from its positions"
    )
