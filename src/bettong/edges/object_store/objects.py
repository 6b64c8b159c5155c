"""Objects of a store by their paths below its URL."""

from contextlib import suppress

from bettong.edges.object_store.faults import is_absence
from bettong.edges.object_store.store import Files, ObjectStore

# For a command that carries no content.
_ANSWER_S_MAX = 15.0
# On top of it for what is carried. S3's read timeout gives up sooner when nothing at all comes.
_BYTES_A_S_MIN = 1024 * 1024
# The largest increment, by protobuf's own limit: how long reading one may take is not known before.
_OBJECT_BYTES_MAX = 2 * 1024**3


class Objects:
    """Each command says what it is `doing`, for errors. Raises StoreError, as `ObjectStore` does."""

    def __init__(self, url: str) -> None:
        """`url` as `bettong.config.endpoints.snapshots_url` leaves it. Does not connect yet."""
        self._store = ObjectStore(url)

    def put(self, doing: str, path: str, data: bytes) -> None:
        """Keeps an object; one that is there is replaced, as a whole where the store does that (S3 does)."""

        def command(files: Files, root: str) -> None:
            files.pipe_file(f"{root}/{path}", data, timeout=_transfer_s(len(data)))

        self._store.ask(doing, command)

    def get(self, doing: str, path: str) -> bytes | None:
        """An object; None where there is none."""

        def command(files: Files, root: str) -> bytes | None:
            try:
                return bytes(files.cat_file(f"{root}/{path}", timeout=_transfer_s(_OBJECT_BYTES_MAX)))
            except FileNotFoundError as error:
                if is_absence(error):
                    return None
                raise

        return self._store.ask(doing, command)

    def names(self, doing: str, path: str, kind: str) -> list[str]:
        """The names in a folder of one kind, file or directory; none when there is no such folder."""

        def command(files: Files, root: str) -> list[str]:
            try:
                found = files.ls(f"{root}/{path}", detail=True, timeout=_ANSWER_S_MAX)
            except FileNotFoundError as error:
                if is_absence(error):
                    return []
                raise
            return [each["name"].rstrip("/").rpartition("/")[2] for each in found if each["type"] == kind]

        return self._store.ask(doing, command)

    def remove(self, doing: str, path: str) -> None:
        """Deletes an object, if it is there."""

        def command(files: Files, root: str) -> None:
            with suppress(FileNotFoundError):  # another process was quicker
                files.rm_file(f"{root}/{path}", timeout=_ANSWER_S_MAX)

        self._store.ask(doing, command)


def _transfer_s(size_bytes: int) -> float:
    return _ANSWER_S_MAX + size_bytes / _BYTES_A_S_MIN
