"""Reads and writes objects of a store by their paths below its URL."""

from collections.abc import Callable
from contextlib import suppress
from itertools import accumulate
from typing import TypeVar

from fsspec.exceptions import FSTimeoutError

from bettong.edges.object_store.connections import Files
from bettong.edges.object_store.faults import is_missing_object
from bettong.edges.object_store.store import ObjectStore

_Found = TypeVar("_Found")

# Time limit of a command without content.
_ANSWER_S_MAX = 15.0
# Content that is written adds to the limit at this rate.
_BYTES_A_S_MIN = 1024 * 1024
# Reads are bounded by their progress: each part takes so long at most. Small, so that a slow read goes on (140 KiB/s);
# large, for each part is a request.
_PART_BYTES = 4 * 1024 * 1024
_PART_S_MAX = 30.0
# For reads in one request, which the client gives up much sooner when no data arrives.
_WHOLE_S_MAX = 4 * 3600.0


class Objects:
    """The objects of one store. `doing` describes each command in errors. Raises StoreError, as `ObjectStore` does."""

    def __init__(self, url: str) -> None:
        """`url` as returned by `bettong.config.endpoints.snapshots_url`. Does not connect yet."""
        self._store = ObjectStore(url)

    def put(self, doing: str, path: str, data: bytes) -> None:
        """Writes or replaces an object; atomically if the store does so (S3 does)."""

        def command(files: Files, root: str) -> None:
            if self._store.has_folders:
                _make_folders(files, root, path)
            files.pipe_file(f"{root}/{path}", data, timeout=_transfer_s(len(data)))

        self._store.ask(doing, command)

    def get(self, doing: str, path: str) -> bytes | None:
        """Reads an object; None if there is none."""
        if self._store.ends_silent_reads:
            return self._content(doing, path, _WHOLE_S_MAX, "no more data came in time")
        return self._read_in_parts(doing, path)

    def names(self, doing: str, path: str, kind: str) -> list[str]:
        """The names of one kind, file or directory, in a folder; empty if there is no such folder."""

        def command(files: Files, root: str) -> list[str]:
            found = _unless_missing(lambda: files.ls(f"{root}/{path}", detail=True, timeout=_ANSWER_S_MAX))
            if found is None:
                return []
            return [each["name"].rstrip("/").rpartition("/")[2] for each in found if each["type"] == kind]

        return self._store.ask(doing, command)

    def remove(self, doing: str, path: str) -> None:
        """Deletes an object if it exists."""

        def command(files: Files, root: str) -> None:
            with suppress(FileNotFoundError):  # another process was quicker
                files.rm_file(f"{root}/{path}", timeout=_ANSWER_S_MAX)

        self._store.ask(doing, command)

    def _read_in_parts(self, doing: str, path: str) -> bytes | None:
        """Each part is retried alone: a large object would not be read whole over a connection that often breaks.

        If the object is replaced meanwhile, parts may be of different versions, which its checksum reveals.
        """

        def command(files: Files, root: str) -> int | None:
            return _unless_missing(lambda: int(files.info(f"{root}/{path}", timeout=_ANSWER_S_MAX)["size"]))

        size = self._store.ask(doing, command)
        if size is None:
            return None
        parts = []
        for start in range(0, size, _PART_BYTES):
            reason = f"{start} of {size} bytes came, then no more in time"
            end = min(start + _PART_BYTES, size)
            part = self._content(doing, path, _PART_S_MAX, reason, start=start, end=end)
            if part is None:
                return None
            parts.append(part)
        return b"".join(parts)

    def _content(self, doing: str, path: str, wait_s_max: float, reason: str, **part: int) -> bytes | None:
        """An object, or `part` of it; None if there is none. `reason` is that of a time-out, as fsspec's has none."""

        def command(files: Files, root: str) -> bytes | None:
            try:
                found = _unless_missing(lambda: files.cat_file(f"{root}/{path}", timeout=wait_s_max, **part))
            except FSTimeoutError:
                raise TimeoutError(reason) from None
            return None if found is None else bytes(found)

        return self._store.ask(doing, command)


def _make_folders(files: Files, root: str, path: str) -> None:
    """Makes the folders of an object, that of the URL too, one by one, for another writer may make them meanwhile."""
    folders = [root, *(f"{root}/{each}" for each in accumulate(path.split("/")[:-1], "{}/{}".format))]
    if files.isdir(folders[-1], timeout=_ANSWER_S_MAX):
        return
    for folder in folders:
        if not files.isdir(folder, timeout=_ANSWER_S_MAX):
            try:
                files.mkdir(folder, create_parents=False, timeout=_ANSWER_S_MAX)
            except Exception:
                if files.isdir(folder, timeout=_ANSWER_S_MAX):
                    continue  # another one made it
                raise


def _transfer_s(size_bytes: int) -> float:
    return _ANSWER_S_MAX + size_bytes / _BYTES_A_S_MIN


def _unless_missing(read: Callable[[], _Found]) -> _Found | None:
    try:
        return read()
    except FileNotFoundError as error:
        if is_missing_object(error):
            return None
        raise
