"""The reference tables of an application in memory: their versions, and what `load()` gives for the first one."""

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
        """`first_rows`: what `load()` of a join gives, see `load_rows`; it may be asked again and again."""
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
        """Each table has its first version. Raises CaseError where `load()` fails."""
        for join, (_, source) in self._sources.items():
            if not self.versions(source.series(join)):
                self.store(join, self._first_rows(join, source))

    def store(self, join: str, rows: Sequence[Any]) -> tuple[str, ReferenceVersion] | None:
        """Stores these rows as a new version; gives the stage whose log has to name it. None where none has to."""
        stage, source = self._sources[join]
        data = loaded_table(source, rows).encode()
        known = self.versions(source.series(join))
        version = next_version(source.series(join), known, fingerprint_of(data))
        if version is None:
            return None
        self._stored[version] = data
        return (stage, version) if known else None


def load_rows(join: str, source: ReferenceSource) -> list[Any]:
    """What `load()` gives, as rows. Raises CaseError."""
    if source.takes_spark:
        raise CaseError(
            f"join_reference {join!r}: load() takes Spark's session, and there is none here; give its table as the"
            f" first input: Reference({join!r}, [{source.schema.name}(...), ...])"
        )
    try:
        loaded = source.load()
    except ANY_ERROR as error:
        raise CaseError(f"join_reference {join!r}: load() failed: {reason_of(error)}") from None
    return read_rows(join, source, loaded)


def read_rows(join: str, source: ReferenceSource, loaded: object) -> list[Any]:
    """The rows of what `load()` gives, by their keys. Raises CaseError."""
    try:
        return loaded_table(source, loaded).columns.messages()
    except SchemaError as error:
        raise CaseError(f"join_reference {join!r}: {error}") from None
