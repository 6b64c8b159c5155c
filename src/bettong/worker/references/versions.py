"""The versions of reference tables that a process has, and which one each partition sees."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Protocol
from weakref import WeakValueDictionary

from bettong.application.plan import Stage
from bettong.application.reference_source import ReferenceSource
from bettong.errors import FrameError, ReferenceLostError, SchemaError, SnapshotError
from bettong.frames.frame import stored_version, version_of
from bettong.identifiers import ReferenceVersion
from bettong.v1 import frame_pb2
from bettong.worker.references.table import ReferenceTable, fingerprint_of

# Series that no join here reads: those of earlier versions of the application, for a rollback.
_OTHER_SERIES_MAX = 64
REMEDY = "bring it back from a copy of the store, or start under another application name"


class StoredVersions(Protocol):
    """The part of `snapshots.references.ReferenceStore` that is used here."""

    def load(self, version: ReferenceVersion) -> bytes | None:
        """See ReferenceStore."""

    def versions(self, series: str) -> list[ReferenceVersion]:
        """See ReferenceStore."""


class ReferenceTables:
    """The tables of a process: each version is read once, and kept while a partition sees it."""

    def __init__(self, store: StoredVersions) -> None:
        self._store = store
        self._tables: WeakValueDictionary[ReferenceVersion, ReferenceTable] = WeakValueDictionary()

    def first(self, series: str) -> ReferenceVersion:
        """The version that messages before the first record of a series see. Raises StoreError."""
        found = self._store.versions(series)
        if not found:
            raise ReferenceLostError(
                f"reference table {series}: no version of it is stored; the processor stores the first one at its"
                f" start: {REMEDY}"
            )
        return found[0]

    def table(self, source: ReferenceSource, version: ReferenceVersion) -> ReferenceTable:
        """A version. Blocks while it is read. Raises StoreError."""
        found = self._tables.get(version)
        if found is None:
            found = self._tables[version] = self._read(source, version)
        return found

    def _read(self, source: ReferenceSource, version: ReferenceVersion) -> ReferenceTable:
        data = self._store.load(version)
        if data is None:
            raise ReferenceLostError(
                f"reference table {version.series}: {version.name} is not in the store, but messages of the log see it:"
                f" {REMEDY}"
            )
        if fingerprint_of(data) != version.fingerprint:
            raise ReferenceLostError(
                f"reference table {version.series}: {version.name} has other bytes than those that were stored:"
                f" {REMEDY}"
            )
        try:
            return ReferenceTable.decode(source, data)
        except SchemaError as error:
            raise ReferenceLostError(
                f"reference table {version.series}: {version.name} cannot be read: {error}: {REMEDY}"
            ) from None


class NoStore:
    """For a worker that is only inspected: it joins nothing."""

    def load(self, version: ReferenceVersion) -> bytes | None:
        """See ReferenceStore."""
        raise ReferenceLostError(f"reference table {version.series}: nothing is read here")

    def versions(self, series: str) -> list[ReferenceVersion]:
        """See ReferenceStore."""
        raise ReferenceLostError(f"reference table {series}: nothing is read here")


class References:
    """Which version of each reference table one partition sees. A fold of the log, like the rest."""

    def __init__(self, stage: Stage, tables: ReferenceTables) -> None:
        self._sources: Mapping[str, tuple[str, ReferenceSource]] = {
            join: (source.series(join), source) for join, source in stage.references.items()
        }
        self._tables = tables
        # By series that a record has named, also those of earlier versions of the application, for a rollback.
        self._versions: dict[str, ReferenceVersion] = {}
        self._current: dict[str, ReferenceTable] = {}

    def switch(self, version: ReferenceVersion) -> None:
        """Later messages see that version, unless they see a newer one already.

        That of a series that no join here reads is kept, too: the application may be rolled back to one that did.
        """
        joins = [join for join, (series, _) in self._sources.items() if series == version.series]
        known = self._versions.get(version.series)
        if known is None and not joins and len(self._versions) >= len(self._sources) + _OTHER_SERIES_MAX:
            return
        if known is None or (version.number, version.fingerprint) > (known.number, known.fingerprint):
            self._versions[version.series] = version
            for join in joins:
                self._current.pop(join, None)

    def table(self, join: str) -> ReferenceTable:
        """The table of a join as it is now. Blocks while it is read. Raises StoreError: then the fold is unusable."""
        found = self._current.get(join)
        if found is None:
            series, source = self._sources[join]
            version = self._versions.get(series) or self._tables.first(series)
            found = self._current[join] = self._tables.table(source, version)
        return found

    def read(self) -> None:
        """Reads all tables, so that `table` does not block until a record switches one. Raises StoreError."""
        if len(self._current) < len(self._sources):
            for join in self._sources:
                self.table(join)

    def stored(self) -> list[frame_pb2.ReferenceVersion]:
        """The versions as a snapshot holds them."""
        return [stored_version(self._versions[series]) for series in sorted(self._versions)]

    def load(self, stored: Iterable[frame_pb2.ReferenceVersion]) -> None:
        """Restores what `stored` returned. Raises SnapshotError."""
        try:
            found = [version_of(each) for each in stored]
        except FrameError as error:
            raise SnapshotError(str(error)) from None
        self._versions = {each.series: each for each in found}
        self._current.clear()
