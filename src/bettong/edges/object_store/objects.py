"""Reads and writes objects of a store by their paths below its URL."""

from contextlib import suppress

from bettong.edges.object_store.faults import is_missing_object
from bettong.edges.object_store.store import Files, ObjectStore

# Time limit of a command without content.
_ANSWER_S_MAX = 15.0
# Content adds to the limit at this rate. S3's read timeout applies sooner when no data arrives at all.
_BYTES_A_S_MIN = 1024 * 1024
# The largest increment, by protobuf's limit: the size of an object to read is not known in advance.
_OBJECT_BYTES_MAX = 2 * 1024**3


class Objects:
    """The objects of one store. `doing` describes each command in errors. Raises StoreError, as `ObjectStore` does."""

    def __init__(self, url: str) -> None:
        """`url` as returned by `bettong.config.endpoints.snapshots_url`. Does not connect yet."""
        self._store = ObjectStore(url)

    def put(self, doing: str, path: str, data: bytes) -> None:
        """Writes or replaces an object; atomically if the store does so (S3 does)."""

        def command(files: Files, root: str) -> None:
            files.pipe_file(f"{root}/{path}", data, timeout=_transfer_s(len(data)))

        self._store.ask(doing, command)

    def get(self, doing: str, path: str) -> bytes | None:
        """Reads an object; None if there is none."""

        def command(files: Files, root: str) -> bytes | None:
            try:
                return bytes(files.cat_file(f"{root}/{path}", timeout=_transfer_s(_OBJECT_BYTES_MAX)))
            except FileNotFoundError as error:
                if is_missing_object(error):
                    return None
                raise

        return self._store.ask(doing, command)

    def names(self, doing: str, path: str, kind: str) -> list[str]:
        """The names of one kind, file or directory, in a folder; empty if there is no such folder."""

        def command(files: Files, root: str) -> list[str]:
            try:
                found = files.ls(f"{root}/{path}", detail=True, timeout=_ANSWER_S_MAX)
            except FileNotFoundError as error:
                if is_missing_object(error):
                    return []
                raise
            return [each["name"].rstrip("/").rpartition("/")[2] for each in found if each["type"] == kind]

        return self._store.ask(doing, command)

    def remove(self, doing: str, path: str) -> None:
        """Deletes an object if it exists."""

        def command(files: Files, root: str) -> None:
            with suppress(FileNotFoundError):  # another process was quicker
                files.rm_file(f"{root}/{path}", timeout=_ANSWER_S_MAX)

        self._store.ask(doing, command)


def _transfer_s(size_bytes: int) -> float:
    return _ANSWER_S_MAX + size_bytes / _BYTES_A_S_MIN
