"""Versions of reference tables: their store, the next version, and those that are no longer needed.

A version is part of the log: records name it, and messages after such a record see it, on every replay. Before the
first such record they see the first version of the series.

    log of a partition    m m m [2] m m m m [3] m m
    sees                  1 1 1      2 2 2 2     3 3

So a version is needed as long as a log holds a record between the one that names it and the one that names the next.
Pure except for calls of stores.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Protocol

from bettong.identifiers import ReferenceVersion

# By partition: the offset of the record that names a version.
Offsets = Mapping[int, int]

_OFFSETS = ".offsets"


class NamedBytes(Protocol):
    """A store of bytes of one application, by folder and name. `tests/contract` tests every implementation.

    `put` is atomic, as saving in a SnapshotStore is. Methods block for as long as the store takes (bounded) and raise
    StoreError when it fails. They may be called from any thread and process.
    """

    def put(self, folder: str, name: str, data: bytes) -> None:
        """Stores bytes; replaces those of the same name."""

    def get(self, folder: str, name: str) -> bytes | None:
        """The bytes of a name; None if there are none."""

    def names(self, folder: str) -> list[str]:
        """The names that are stored now."""

    def remove(self, folder: str, name: str) -> None:
        """Deletes the bytes of a name, if there are any."""


class ReferenceStore:
    """The stored versions of one application's reference tables: a folder a series. Raises StoreError."""

    def __init__(self, kept: NamedBytes) -> None:
        self._kept = kept

    def save(self, version: ReferenceVersion, data: bytes) -> None:
        """Stores the bytes of a version."""
        self._kept.put(version.series, version.name, data)

    def load(self, version: ReferenceVersion) -> bytes | None:
        """The bytes of a version; None when it is not stored, or no longer."""
        return self._kept.get(version.series, version.name)

    def versions(self, series: str) -> list[ReferenceVersion]:
        """The stored versions of a series, the lowest number first."""
        found = (ReferenceVersion.parse(series, name) for name in self._kept.names(series))
        return sorted(each for each in found if each is not None)

    def note_offsets(self, version: ReferenceVersion, stage: str, offsets: Offsets) -> None:
        """Stores the offsets, in the partitions of a stage's log, of the records that name the version."""
        noted = {"stage": stage, "offsets": offsets}
        self._kept.put(version.series, version.name + _OFFSETS, json.dumps(noted).encode())

    def offsets(self, version: ReferenceVersion, stage: str) -> Offsets | None:
        """The offsets noted last; None if there are none, they cannot be read, or are of another stage's log."""
        noted = self._kept.get(version.series, version.name + _OFFSETS)
        try:
            found = {} if noted is None else json.loads(noted)
            if found.get("stage") != stage:
                return None
            return {int(partition): int(offset) for partition, offset in found["offsets"].items()} or None
        except (ValueError, TypeError, AttributeError, KeyError):
            return None

    def remove(self, version: ReferenceVersion) -> None:
        """Deletes a version that is no longer needed, and its noted offsets."""
        self._kept.remove(version.series, version.name + _OFFSETS)
        self._kept.remove(version.series, version.name)


def next_version(
    series: str, known: Iterable[ReferenceVersion], fingerprint: bytes
) -> ReferenceVersion | None:
    """The version for a table that was just loaded, with the fingerprint of its bytes; None if it is the newest one."""
    newest = max(known, default=None, key=_order)
    if newest is None:
        return ReferenceVersion(series, 1, fingerprint)
    return (
        None
        if newest.fingerprint == fingerprint
        else ReferenceVersion(series, newest.number + 1, fingerprint)
    )


def superfluous(
    offsets: Mapping[ReferenceVersion, Offsets | None], begins: Mapping[int, int]
) -> list[ReferenceVersion]:
    """The versions of a series that no message in the log can see any more, also on replay from a state.

    `offsets`: of each stored version, None where they are not known. `begins`: where the log of each partition begins.
    Versions in doubt are kept.
    """
    passed = [
        version
        for version, named in offsets.items()
        if named is not None
        and all(named.get(partition, begin) < begin for partition, begin in begins.items())
    ]
    if not passed or not begins:
        return []
    newest = max(map(_order, passed))
    return sorted((each for each in offsets if _order(each) < newest), key=_order)


def _order(version: ReferenceVersion) -> tuple[int, bytes]:
    return version.number, version.fingerprint
