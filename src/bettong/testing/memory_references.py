"""The reference tables of an application in memory: their versions, the first one from `load()`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from bettong.application.plan import Plan
from bettong.application.reference_source import ReferenceSource
from bettong.errors import CaseError, SchemaError
from bettong.identifiers import ReferenceVersion
from bettong.snapshots.references import next_version
from bettong.user_errors import ANY_ERROR, reason_of
from bettong.worker.references.loaded import loaded_table
from bettong.worker.references.table import fingerprint_of


class MemoryReferences:
    """Versions in memory (see `worker.references.versions.StoredVersions`), and the loader that stores them."""

    def __init__(self, plan: Plan, first_rows: Callable[[str, ReferenceSource], Sequence[Any]]) -> None:
        """`first_rows`: the rows from `load()` of a join, see `load_rows`; it may be called repeatedly."""
        self._sources = {
            join: (stage.name, source) for stage in plan.stages for join, source in stage.references.items()
        }
        self._first_rows = first_rows
        self._stored: dict[ReferenceVersion, bytes] = {}

    def load(self, version: ReferenceVersion) -> bytes | None:
        """See StoredVersions."""
        return self._stored.get(version)

    def versions(self, series: str) -> list[ReferenceVersion]:
        """See StoredVersions."""
        return sorted(each for each in self._stored if each.series == series)

    def begin(self) -> None:
        """Stores the first version of each table. Raises CaseError where `load()` fails."""
        for join, (_, source) in self._sources.items():
            if not self.versions(source.series(join)):
                self.store(join, self._first_rows(join, source))

    def store(self, join: str, rows: Sequence[Any]) -> tuple[str, ReferenceVersion] | None:
        """Stores these rows as a new version; returns it and the stage whose log has to name it, or None."""
        stage, source = self._sources[join]
        data = loaded_table(source, rows).encode()
        known = self.versions(source.series(join))
        version = next_version(source.series(join), known, fingerprint_of(data))
        if version is None:
            return None
        self._stored[version] = data
        return (stage, version) if known else None


def load_rows(join: str, source: ReferenceSource) -> list[Any]:
    """The table from `load()`, as rows. Raises CaseError."""
    if source.takes_spark:
        raise CaseError(
            f"join_reference {join!r}: load() takes Spark's session, which tests do not have; give its table as the"
            f" first input: Reference({join!r}, [{source.schema.name}(...), ...])"
        )
    try:
        loaded = source.load()
    except ANY_ERROR as error:
        raise CaseError(f"join_reference {join!r}: load() failed: {reason_of(error)}") from None
    return read_rows(join, source, loaded)


def read_rows(join: str, source: ReferenceSource, loaded: object) -> list[Any]:
    """The rows of a table that `load()` returned, by their keys. Raises CaseError."""
    try:
        return loaded_table(source, loaded).columns.messages()
    except SchemaError as error:
        raise CaseError(f"join_reference {join!r}: {error}") from None
