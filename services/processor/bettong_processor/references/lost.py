"""Versions of reference tables that the log names and the store has lost, as after a failover to an older replica.

a worker misses a version ─> the run ends ─> note ─> the next start loads the table
                                                       ├── the same table ──> stored again, and the run goes on
                                                       └── another one ─────> ReferenceLostError: an operator must act
"""

import re

from bettong.errors import ReferenceLostError
from bettong.identifiers import ReferenceVersion
from bettong_processor.faults import fault_of

# A worker's error reaches the driver as Spark's text: see `bettong.worker.references.versions`.
_MISSING = re.compile(r"reference table (?P<series>.+): (?P<name>\d+-[0-9a-f]{64}) is not in the store")


class LostVersions:
    """The versions that are to be stored again, by series. One object for the life of a process; used by one thread."""

    def __init__(self) -> None:
        self._lost: dict[str, ReferenceVersion] = {}
        self._restored: set[ReferenceVersion] = set()

    def note(self, error: str) -> str:
        """Notes the version that a run missed. Returns the fault's text; "" for other errors.

        Also "" for a version that this process has stored again before: a store that loses it again needs an operator.
        """
        fault = fault_of(error)
        found = _MISSING.search(fault.text) if fault.final is ReferenceLostError else None
        version = ReferenceVersion.parse(found["series"], found["name"]) if found else None
        if version is None or version in self._restored:
            return ""
        self._lost[version.series] = version
        return fault.text

    def of(self, series: str) -> ReferenceVersion | None:
        """The lost version of a series, if any."""
        return self._lost.get(series)

    def restored(self, version: ReferenceVersion) -> None:
        """Call it once the store has the version again."""
        del self._lost[version.series]
        self._restored.add(version)
