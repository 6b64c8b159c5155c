"""One reference table: its versions in the store, the newest of them named in each log, old ones removed."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bettong.application.reference_source import ReferenceSource
from bettong.identifiers import ReferenceVersion
from bettong.logs import Logger
from bettong.snapshots.references import Offsets, ReferenceStore, next_version, superfluous
from bettong.worker.references.table import fingerprint_of

Load = Callable[[], bytes]
# Names a version in each partition's log of a stage, and says where. Raises LogError, StoreError.
Name = Callable[[str, ReferenceVersion], Offsets]
# Where the log of each partition of a stage begins. Raises LogError.
Begins = Callable[[str], Mapping[int, int]]


@dataclass(slots=True)
class KeptTable:
    """Of a join of a stage. For one thread. What it asks of the store raises StoreError."""

    join: str
    stage: str
    source: ReferenceSource
    load: Load
    store: ReferenceStore
    name: Name
    begins: Begins
    log: Logger
    # Whether it was loaded just now.
    is_fresh: bool = False
    # Of versions that this run has named in each log, or that are noted as named.
    _offsets: dict[ReferenceVersion, Offsets] = field(default_factory=dict)

    @property
    def series(self) -> str:
        """See ReferenceSource."""
        return self.source.series(self.join)

    def has_version(self) -> bool:
        """Whether messages before the first record see something."""
        return bool(self.store.versions(self.series))

    def store_first(self) -> None:
        """Loads the table, and stores its first version, unless there is one by then. Raises ReferenceLoadError."""
        data = self.load()
        if not self.has_version():
            self._store(data, [])
            self.is_fresh = True

    def refresh(self, is_stopping: Callable[[], bool]) -> None:
        """Loads the table, unless that was just done; a version that is new is stored, then named in each log. Removes
        what nobody needs.

        Nothing, where the run is stopping by then: another may be at work. Raises ReferenceLoadError, LogError.
        """
        versions = self.store.versions(self.series) if self.is_fresh else self._loaded(is_stopping)
        self.is_fresh = False
        if not versions:
            return
        newest = versions[-1]
        begins = self.begins(self.stage)
        # Once a run, whatever was noted, for the log may be another one, or a worker of an earlier version of the
        # application may have folded the record and known no such table. It changes nothing for who is at it. The first
        # one, too: so it is noticed when the store has lost it.
        if not begins.keys() <= self._offsets.get(newest, {}).keys():
            self._offsets[newest] = self.name(self.stage, newest)
            self.store.note_offsets(newest, self.stage, self._offsets[newest])
            self.log.info("reference table named in the log", version=str(newest))
        for old in superfluous({each: self._named(each) for each in versions}, begins):
            self.store.remove(old)
            self._offsets.pop(old, None)
            self.log.info("reference table removed: nothing needs it any more", version=str(old))

    def _loaded(self, is_stopping: Callable[[], bool]) -> list[ReferenceVersion]:
        data = self.load()
        return [] if is_stopping() else self._store(data, self.store.versions(self.series))

    def _store(self, data: bytes, known: list[ReferenceVersion]) -> list[ReferenceVersion]:
        version = next_version(self.series, known, fingerprint_of(data))
        if version is None:
            return known
        self.store.save(version, data)
        self.log.info("reference table stored", version=str(version), size_bytes=len(data))
        return [*known, version]

    def _named(self, version: ReferenceVersion) -> Offsets | None:
        found = self._offsets.get(version) or self.store.offsets(version, self.stage)
        if found is not None:
            self._offsets[version] = found
        return found
