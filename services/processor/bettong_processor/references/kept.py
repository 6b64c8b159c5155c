"""One reference table: stores its versions, names the newest in each log, and removes old ones."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bettong.application.reference_source import ReferenceSource
from bettong.errors import ReferenceLostError
from bettong.identifiers import ReferenceVersion
from bettong.logs import Logger
from bettong.snapshots.references import Offsets, ReferenceStore, next_version, superfluous
from bettong.worker.references.table import fingerprint_of
from bettong.worker.references.versions import REMEDY

Load = Callable[[], bytes]
# Names a version in each partition's log of a stage; returns the offsets. Raises LogError, StoreError.
Name = Callable[[str, ReferenceVersion], Offsets]
# Where the log of each partition of a stage begins. Raises LogError.
Begins = Callable[[str], Mapping[int, int]]


@dataclass(slots=True)
class KeptTable:
    """The reference table of a stage's join. For one thread. Any method may raise StoreError."""

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
    # Where each version is named in the logs, by this run or according to the store.
    _offsets: dict[ReferenceVersion, Offsets] = field(default_factory=dict)

    @property
    def series(self) -> str:
        """See ReferenceSource."""
        return self.source.series(self.join)

    def has_version(self) -> bool:
        """Whether a version is stored. The first one also applies to messages before the record that names it."""
        return bool(self.store.versions(self.series))

    def store_first(self, is_stopping: Callable[[], bool]) -> bool:
        """Loads the table, and stores its first version unless one exists by then. Raises ReferenceLoadError.

        Returns whether there is one. Stores nothing if `is_stopping` after the load: another may lead, and have stored
        another table. No store has a fence: a process that stands still for seconds right between that check and its
        write can still add a version.
        """
        data = self.load()
        if is_stopping():
            return False
        if not self.has_version():
            self._store(data, [])
            self.is_fresh = True
        return True

    def store_again(self, lost: ReferenceVersion, is_stopping: Callable[[], bool]) -> bool:
        """Loads the table, and stores it as the version that the store has lost, unless it has it by then.

        Returns whether the store has it: not if `is_stopping` after the load. Raises ReferenceLoadError, and
        ReferenceLostError if `load` returns another table by now.
        """
        if lost in self.store.versions(self.series):
            return True
        data = self.load()
        if is_stopping():
            return False
        if fingerprint_of(data) != lost.fingerprint:
            raise ReferenceLostError(
                f"reference table {self.series}: {lost.name} is not in the store, and load() returns another"
                f" table now: {REMEDY}"
            )
        self.store.save(lost, data)
        self.log.warning("reference table stored again: the store had lost it", version=str(lost))
        return True

    def refresh(self, is_stopping: Callable[[], bool]) -> None:
        """Loads the table unless `store_first` just has; stores a new version, then names it in each log.

        Removes versions that are no longer needed. Does nothing if the run is stopping after the load: another
        may lead. Raises ReferenceLoadError, LogError.
        """
        versions = self.store.versions(self.series) if self.is_fresh else self._load_and_store(is_stopping)
        self.is_fresh = False
        if not versions:
            return
        newest = versions[-1]
        begins = self.begins(self.stage)
        # Named once in each run, even if the store says that it is named: the log may be another one, or an earlier
        # version of the application, without this table, may have folded the record. A worker that already uses the
        # version ignores the record. The first version too: so a store that has lost it is detected.
        if not begins.keys() <= self._offsets.get(newest, {}).keys():
            self._offsets[newest] = self.name(self.stage, newest)
            self.store.note_offsets(newest, self.stage, self._offsets[newest])
            self.log.info("reference table named in the log", version=str(newest))
        for old in superfluous({each: self._named_offsets(each) for each in versions}, begins):
            self.store.remove(old)
            self._offsets.pop(old, None)
            self.log.info("reference table removed: nothing needs it any more", version=str(old))

    def _load_and_store(self, is_stopping: Callable[[], bool]) -> list[ReferenceVersion]:
        data = self.load()
        return [] if is_stopping() else self._store(data, self.store.versions(self.series))

    def _store(self, data: bytes, known: list[ReferenceVersion]) -> list[ReferenceVersion]:
        version = next_version(self.series, known, fingerprint_of(data))
        if version is None:
            return known
        self.store.save(version, data)
        self.log.info("reference table stored", version=str(version), size_bytes=len(data))
        return [*known, version]

    def _named_offsets(self, version: ReferenceVersion) -> Offsets | None:
        found = self._offsets.get(version) or self.store.offsets(version, self.stage)
        if found is not None:
            self._offsets[version] = found
        return found
