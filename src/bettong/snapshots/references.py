"""Versions of reference tables: where they are kept, which one comes next, and which ones nobody needs any more.

A version is data of the log: records name it, and messages behind such a record see it, on every replay. Before the
first such record they see the first version of the series.

    log of a partition    m m m [2] m m m m [3] m m
    sees                  1 1 1      2 2 2 2     3 3

So a version is needed as long as a log holds a record between the one that names it and the one that names the next.
Pure but for what is asked of stores.
"""

import json
from collections.abc import Iterable, Mapping
from typing import Protocol

from bettong.identifiers import ReferenceVersion

# By partition: the offset of the record that names a version.
Offsets = Mapping[int, int]

_OFFSETS = ".offsets"


class NamedBytes(Protocol):
    """Where bytes are kept under a folder and a name, of one application. `tests/contract` holds the proof.

    Putting is atomic, as saving in a SnapshotStore is. Methods block for as long as the store takes (bounded) and raise
    StoreError when it fails. They may be called from any thread and process.
    """

    def put(self, folder: str, name: str, data: bytes) -> None:
        """Keeps these bytes; those of the same name are replaced."""

    def get(self, folder: str, name: str) -> bytes | None:
        """The bytes of a name; None where there are none."""

    def names(self, folder: str) -> list[str]:
        """What is kept now."""

    def remove(self, folder: str, name: str) -> None:
        """Deletes them, if they are there."""


class ReferenceStore:
    """The versions of one application's reference tables: a folder a series. Raises StoreError."""

    def __init__(self, kept: NamedBytes) -> None:
        self._kept = kept

    def save(self, version: ReferenceVersion, data: bytes) -> None:
        """Keeps the bytes of a version."""
        self._kept.put(version.series, version.name, data)

    def load(self, version: ReferenceVersion) -> bytes | None:
        """The bytes of a version; None when it is not kept, or no longer."""
        return self._kept.get(version.series, version.name)

    def versions(self, series: str) -> list[ReferenceVersion]:
        """What is kept of a series now, the lowest number first."""
        found = (ReferenceVersion.parse(series, name) for name in self._kept.names(series))
        return sorted(each for each in found if each is not None)

    def note_offsets(self, version: ReferenceVersion, stage: str, offsets: Offsets) -> None:
        """A record of each partition of a stage's log names the version: there it lies."""
        noted = {"stage": stage, "offsets": offsets}
        self._kept.put(version.series, version.name + _OFFSETS, json.dumps(noted).encode())

    def offsets(self, version: ReferenceVersion, stage: str) -> Offsets | None:
        """What was noted last; None where nothing was, nothing that can be read, or of another stage's log."""
        noted = self._kept.get(version.series, version.name + _OFFSETS)
        try:
            found = {} if noted is None else json.loads(noted)
            if found.get("stage") != stage:
                return None
            return {int(partition): int(offset) for partition, offset in found["offsets"].items()} or None
        except (ValueError, TypeError, AttributeError, KeyError):
            return None

    def remove(self, version: ReferenceVersion) -> None:
        """Nobody needs a version any more, nor where it is named."""
        self._kept.remove(version.series, version.name + _OFFSETS)
        self._kept.remove(version.series, version.name)


def next_version(
    series: str, known: Iterable[ReferenceVersion], fingerprint: bytes
) -> ReferenceVersion | None:
    """The version of a table that was just loaded, whose bytes have that fingerprint; None where it is the newest."""
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
    """The versions of a series that no message of the log sees any more, nor a state from which it may be folded.

    `offsets`: of each version that is kept, None where they are not known. `begins`: where the log of each partition
    begins. What is in doubt stays.
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
