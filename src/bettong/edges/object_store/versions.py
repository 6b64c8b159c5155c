"""Versions of reference tables in an object store."""

from bettong.edges.object_store.objects import Objects


class ObjectVersions:
    """`snapshots.references.NamedBytes` in objects. Raises StoreError. Atomic in the same stores as ObjectSnapshots."""

    def __init__(self, url: str, application: str) -> None:
        """See ObjectSnapshots."""
        self._objects = Objects(url)
        self._root = f"{application}/references"

    def put(self, folder: str, name: str, data: bytes) -> None:
        """See NamedBytes."""
        self._objects.put(f"saving {name} of reference table {folder}", f"{self._root}/{folder}/{name}", data)

    def get(self, folder: str, name: str) -> bytes | None:
        """See NamedBytes."""
        return self._objects.get(
            f"reading {name} of reference table {folder}", f"{self._root}/{folder}/{name}"
        )

    def names(self, folder: str) -> list[str]:
        """See NamedBytes."""
        doing = f"listing versions of reference table {folder}"
        return self._objects.names(doing, f"{self._root}/{folder}", "file")

    def remove(self, folder: str, name: str) -> None:
        """See NamedBytes."""
        self._objects.remove(f"deleting {name} of reference table {folder}", f"{self._root}/{folder}/{name}")
