"""Results in files in folders named after fields of the messages, each exactly once.

    <folder>/.lock                                  held while a receiver writes here
    <folder>/.positions                             the position of each partition: see `file_journal`
    <folder>/day=2026-11-26/hour=03/00003.jsonl     results of partition 3 that belong to this folder

A folder has one file per partition, for the reason given in `files`: no two runs interleave partitions alike. Any
number of files may be written to between two positions, so a position beside each file would not do. Messages are
buffered instead, and a commit, twice a second, has four steps:

    1  write .positions: the old positions, and the files to write to with their lengths    (fsync, then rename)
    2  append the messages, one file after the other, one open at a time                    (fsync)
    3  sync the folders that have new names
    4  write .positions: the positions after these messages, and no files

A crash in between leaves the journal of step 1: the next connector that opens the folder truncates those files and
resumes from the old positions. Only a commit in progress needs its files: all others may be moved or deleted.
"""

import os
import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import NamedTuple

from bettong.application.external.partitioned_files import PartitionedFiles
from bettong.errors import SettingsError
from bettong.frames.frame import Frame
from bettong.schema.schema import Schema
from bettong_receiver.connectors import durable, file_journal
from bettong_receiver.connectors.file_journal import Journal
from bettong_receiver.connectors.folder_names import folders_by, name_fault
from bettong_receiver.delivery.connector import Refused, SinkBatch, SinkConnector
from bettong_receiver.delivery.route import Route
from bettong_receiver.errors import PositionError, SinkError
from bettong_receiver.formats import columns_of
from bettong_receiver.json_lines import JsonLines
from bettong_receiver.progress import SinkPartition
from bettong_receiver.sink_context import SinkContext

# A commit syncs twice, and once per file. Readers see messages up to this much later.
COMMIT_INTERVAL_S = 0.5
# Buffered messages: more than this are committed at once. A round of deliveries adds 4 MiB of frames.
_BUFFERED_BYTES_MAX = 8 * 1024 * 1024
_JOURNAL = ".positions"
# What an unused folder may contain: a lock, an unfinished first journal, a new file system's own folder.
_NAMES_IN_EMPTY = {".lock", ".positions-new", "lost+found"}


class FolderLine(NamedTuple):
    """A message without its line end, and its folder."""

    folder: str
    line: bytes


def route(context: SinkContext, to: PartitionedFiles) -> Route[FolderLine]:
    """See `bettong_receiver.connectors`."""
    folder = folder_of(str(context.options(to, needs="folder")["folder"]), sink=context.name)

    def make() -> PartitionedFilesConnector:
        return PartitionedFilesConnector(
            folder,
            application=context.plan.application,
            sink=context.name,
            monotonic_s=time.monotonic,
        )

    return context.route(read_folder_lines(context.schema, to.fields), make)


def folder_of(text: str, *, sink: str) -> Path:
    """The folder of a connection. Raises SettingsError for a relative path, which depends on the working directory."""
    folder = Path(text)
    if not folder.is_absolute():
        raise SettingsError(
            f"sink {sink!r}: 'folder' of its connection is {text!r}, expected an absolute path"
        )
    return folder


def read_folder_lines(schema: Schema, names: Sequence[str]) -> Callable[[Frame], list[FolderLine]]:
    """Returns a function that reads a frame as JSON lines, each with the folder named by the fields `names`."""
    indexes = [schema.position(name) for name in names]
    folder = folders_by([schema.fields[index] for index in indexes])

    def read(frame: Frame) -> list[FolderLine]:
        columns = columns_of(frame, schema)
        values = zip(*(columns.values(index) for index in indexes), strict=True)
        return list(map(FolderLine, map(folder, values), JsonLines(columns)))

    return read


class PartitionedFilesConnector(SinkConnector[FolderLine]):
    """See SinkConnector. Refuses messages whose folder name is too long for a file system.

    Every method raises SinkError on a disk error.
    """

    def __init__(
        self, folder: Path, *, application: str, sink: str, monotonic_s: Callable[[], float]
    ) -> None:
        self._folder = folder
        self._name = f"sink {sink}, folder {folder}"
        self._monotonic_s = monotonic_s
        self._next_commit_s = monotonic_s()
        self._journal = Journal(application, sink)
        self._buffer: dict[str, list[bytes]] = {}
        self._buffered_bytes = 0
        self._moved: dict[int, Callable[[], bytes]] = {}
        self._descriptors = ExitStack()

    def open(self, beginnings: Mapping[SinkPartition, int]) -> dict[SinkPartition, bytes | None]:
        """See SinkConnector. Undoes an incomplete commit.

        Raises PositionError, naming file and remedy, when files and journal do not match.
        """
        try:
            with ExitStack() as undo:
                self._folder.mkdir(parents=True, exist_ok=True)
                undo.callback(
                    os.close,
                    durable.lock(self._folder, remedy="give each sink a folder of its own, and run one"),
                )
                self._recover()
                self._descriptors = undo.pop_all()
        except OSError as error:
            raise self._sink_error("open the folder", error) from None
        return {key: self._journal.positions.get(key.partition) for key in beginnings}

    def deliver(self, batches: Sequence[SinkBatch[FolderLine]]) -> Refused:
        """See SinkConnector. Buffers messages and positions until the next `flush` or `finish`."""
        refused: dict[SinkPartition, dict[int, str]] = {}
        for batch in batches:
            contents, faults = self._lines_by_folder(batch)
            self._moved[batch.partition] = batch.moving.encode
            if faults:
                if batch.refusing is None:
                    raise SinkError(f"{self._name}: {next(iter(faults.values()))}")
                self._moved[batch.partition] = partial(bytes, batch.refusing(faults))
                refused[batch.key] = faults
            for folder, lines in contents.items():
                content = b"\n".join([*lines, b""])
                self._buffer.setdefault(f"{folder}/{batch.partition:05}.jsonl", []).append(content)
                self._buffered_bytes += len(content)
        return refused

    def flush(self) -> None:
        """Commits when the interval has passed or the buffer is full."""
        now_s = self._monotonic_s()
        if now_s >= self._next_commit_s or self._buffered_bytes >= _BUFFERED_BYTES_MAX:
            self.finish()
            self._next_commit_s = now_s + COMMIT_INTERVAL_S

    def finish(self) -> None:
        """Commits everything that was delivered."""
        if not self._moved:
            return
        positions = {**self._journal.positions, **{key: moved() for key, moved in self._moved.items()}}
        try:
            if self._buffer:
                self._write_buffer()
            self._journal = replace(self._journal, positions=positions, lengths={})
            self._write_journal()
        except OSError as error:
            raise self._sink_error("write", error) from None
        self._moved.clear()

    def close(self) -> None:
        """See SinkConnector."""
        self._descriptors.close()

    @staticmethod
    def _lines_by_folder(batch: SinkBatch[FolderLine]) -> tuple[dict[str, list[bytes]], dict[int, str]]:
        """The lines by folder, and by index why the other messages are refused."""
        contents: dict[str, list[bytes]] = defaultdict(list)
        faults: dict[str, str | None] = {}
        refused: dict[int, str] = {}
        for index, (folder, line) in enumerate(batch.messages):
            if folder not in faults:
                faults[folder] = name_fault(folder)
            if (fault := faults[folder]) is None:
                contents[folder].append(line)
            else:
                refused[index] = fault
        return contents, refused

    def _write_buffer(self) -> None:
        """Steps 1 to 3 of a commit."""
        paths = {name: self._folder / name for name in self._buffer}
        lengths = {name: path.stat().st_size if path.exists() else 0 for name, path in paths.items()}
        self._journal = replace(self._journal, lengths=lengths)
        self._write_journal()
        # The journal must survive a power failure before any file grows.
        durable.sync_folder(self._folder)
        unsynced: set[Path] = set()
        for name, contents in self._buffer.items():
            unsynced |= _append(self._folder, paths[name], b"".join(contents))
        for folder in unsynced:
            durable.sync_folder(folder)
        self._buffer.clear()
        self._buffered_bytes = 0

    def _write_journal(self) -> None:
        durable.replace(self._folder / _JOURNAL, self._journal.encode())

    def _recover(self) -> None:
        path = self._folder / _JOURNAL
        if not path.exists():
            if unexpected := [
                each.name for each in self._folder.iterdir() if each.name not in _NAMES_IN_EMPTY
            ]:
                raise PositionError(
                    f"{self._folder} has no {_JOURNAL}, but holds {min(unexpected)}; name an empty folder, or restore"
                    f" {_JOURNAL} from the backup that the files are from"
                )
            self._write_journal()
            durable.sync_folder(self._folder)
            return
        try:
            self._journal = file_journal.decode(
                self._journal.application, self._journal.sink, path.read_bytes()
            )
        except PositionError as error:
            raise PositionError(f"{path}: {error}; {self._remedy()}") from None
        if self._journal.lengths:
            self._undo(self._journal.lengths)
            self._journal = replace(self._journal, lengths={})
            self._write_journal()
            durable.sync_folder(self._folder)

    def _undo(self, lengths: Mapping[str, int]) -> None:
        """Truncates files, and syncs the folders above them, which later commits do not see as new."""
        unsynced: set[Path] = set()
        for name, length_bytes in lengths.items():
            path = self._folder / name
            self._truncate(path, length_bytes)
            unsynced.update(self._folder / each for each in Path(name).parents)
        for folder in unsynced:
            if folder.exists():
                durable.sync_folder(folder)

    def _truncate(self, path: Path, length_bytes: int) -> None:
        """Truncates a file durably. If somebody has deleted it, there is nothing to undo."""
        if not path.exists():
            return
        descriptor = os.open(path, os.O_WRONLY | os.O_CLOEXEC)
        try:
            if (size_bytes := os.fstat(descriptor).st_size) < length_bytes:
                raise PositionError(
                    f"{path} has {size_bytes} bytes, but {length_bytes} by {_JOURNAL}; {self._remedy()}"
                )
            os.ftruncate(descriptor, length_bytes)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _remedy(self) -> str:
        return (
            f"restore {self._folder} from one backup, or empty it, {_JOURNAL} too:"
            " it is rewritten from the oldest record in the log"
        )

    def _sink_error(self, doing: str, error: OSError) -> SinkError:
        where = f" {error.filename}" if error.filename else ""
        return SinkError(f"{self._name}: cannot {doing}{where}: {error.strerror or error}")


def _append(root: Path, path: Path, content: bytes) -> set[Path]:
    """Appends durably; returns the folders that have new names and are not synced yet."""
    unsynced: set[Path] = set()
    if not path.exists():
        unsynced.add(path.parent)
        for folder in path.parents:
            if folder == root or folder.exists():
                break
            unsynced.add(folder.parent)
        path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        view = memoryview(content)
        while view:
            view = view[os.write(descriptor, view) :]
        os.fdatasync(descriptor)
    finally:
        os.close(descriptor)
    return unsynced
