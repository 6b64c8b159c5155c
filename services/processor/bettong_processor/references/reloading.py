"""All reference tables of an application: the first versions before anything is folded, newer ones beside the schedule.

    thread "table JOIN"   loads the table when the run begins, then every `reload_every`; retries after a failure

A `load` that fails leaves the table unchanged. It is user code, and may take long or hang; other tables do not wait.
"""

import threading
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from py4j.protocol import Py4JError
from pyspark import InheritableThread
from pyspark.errors import PySparkException

from bettong import metrics
from bettong.backoff import Backoff
from bettong.errors import BettongError, ReferenceLoadError, StoreUnavailableError
from bettong.logs import Logger
from bettong.user_errors import ANY_ERROR, reason_of
from bettong_processor.references.kept import KeptTable
from bettong_processor.references.lost import LostVersions
from bettong_processor.supervision import Run

# Pauses after a failure; at most the table's `reload_every`.
_BACKOFF_S_MIN = 5.0
_BACKOFF_S_MAX = 300.0
# A load that takes longer is reported: it may wait for a slot of Spark's, or hang.
_LONG_S = 60.0


def store_first(
    tables: Sequence[KeptTable],
    lost: LostVersions,
    *,
    is_stopping: Callable[[], bool],
    waiting: Callable[[str], None],
    poll_s: float,
) -> None:
    """Loads each table that has no version yet, or has `lost` one, and stores it. Reports that to `waiting`; blocks.

    Raises ReferenceLoadError, also once `is_stopping`; and StoreError.
    """
    for table in tables:
        version = lost.of(table.series)
        if version is not None:
            work = partial(table.store_again, version, is_stopping)
        elif not table.has_version():
            work = partial(table.store_first, is_stopping)
        else:
            continue
        loading = _Loading(work, table.join)
        while not (loading.ended(poll_s) or is_stopping()):
            waiting(f"loads reference table {table.join!r}")
        if loading.error is not None:
            raise loading.error
        # Not even if the processor leads again by now: what it could not store is still missing.
        if not loading.is_stored or is_stopping():
            raise ReferenceLoadError(
                f"reference table {table.join!r}: not loaded before this processor stopped, or lost the lead"
            )
        if version is not None:
            lost.restored(version)


class _Loading:
    """A first load in its own daemon thread, which does not delay the end of the process."""

    def __init__(self, work: Callable[[], bool], join: str) -> None:
        """`work` returns whether the table is stored."""
        self.error: BaseException | None = None
        self.is_stored = False
        self._work = work
        self._thread = InheritableThread(target=self._run, name=f"first table {join}", daemon=True)
        self._thread.start()

    def ended(self, wait_s: float) -> bool:
        self._thread.join(wait_s)
        return not self._thread.is_alive()

    def _run(self) -> None:
        try:
            self.is_stored = self._work()
        except ANY_ERROR as error:
            self.error = error


class Reloading:
    """A `supervision.Run` around another one, with threads that reload its tables."""

    def __init__(
        self,
        run: Run,
        tables: Sequence[KeptTable],
        lost: LostVersions,
        *,
        clock: Callable[[], float],
        log: Logger,
    ) -> None:
        """`lost` gets a version that the run misses. `clock`: Unix seconds."""
        self._lost = lost
        self._run = run
        self._clock = clock
        self._log = log
        self._stopping = threading.Event()
        # By join: since when its load fails, and why; when the running load began.
        self._faults: dict[str, tuple[float, str]] = {}
        self._begun_s: dict[str, float] = {}
        # When it was last loaded; at first, the begin of the run.
        self._loaded_s = {table.join: clock() for table in tables}
        self._periodic = {table.join for table in tables if table.source.reload_every_ns is not None}
        for table in tables:
            InheritableThread(
                target=self._reload, args=(table,), name=f"table {table.join}", daemon=True
            ).start()

    @property
    def name(self) -> str:
        """See Run."""
        return self._run.name

    def waits_for(self) -> str:
        """See Run."""
        return self._run.waits_for()

    def metrics(self) -> Mapping[str, str | float]:
        """See Run."""
        ages = {f"{metrics.REFERENCE_AGE.name}/{join}": age_s for join, age_s in self.ages_s().items()}
        return {**self._run.metrics(), metrics.REFERENCES.name: self.faults(), **ages}

    def ended(self, wait_s: float) -> bool:
        """See Run. Raises StoreUnavailableError if it misses a version of a table that a new start may store again."""
        try:
            return self._run.ended(wait_s)
        except (PySparkException, Py4JError) as error:
            if missing := self._lost.note(str(error)):
                raise StoreUnavailableError(
                    f"{missing}; the table is loaded, and stored again if it is the same"
                ) from None
            raise

    def leave(self) -> None:
        """See Run."""
        self._stopping.set()
        self._run.leave()

    def stop(self, wait_s: float) -> None:
        """See Run. Does not wait for a running load: its result is discarded."""
        self._stopping.set()
        self._run.stop(wait_s)

    def faults(self) -> str:
        """One line for people about tables whose load fails or takes long; "" for none."""
        now_s = self._clock()
        found = dict.fromkeys(self._faults) | {
            join: None for join, at_s in list(self._begun_s.items()) if now_s - at_s > _LONG_S
        }
        return "; ".join(self._fault_text(join, now_s) for join in sorted(found))

    def ages_s(self) -> dict[str, float]:
        """The ages of tables that are reloaded periodically, or whose load fails."""
        now_s, shown = self._clock(), self._periodic | dict(self._faults).keys()
        return {join: now_s - at_s for join, at_s in list(self._loaded_s.items()) if join in shown}

    def _fault_text(self, join: str, now_s: float) -> str:
        since_s, why = self._faults.get(join, (None, ""))
        begun_s = self._begun_s.get(join)
        texts = [] if since_s is None else [f"not loaded again since {_moment(since_s)}: {why}"]
        if begun_s is not None and now_s - begun_s > _LONG_S:
            texts.append(f"load() has not ended for {now_s - begun_s:.0f} s")
        return f"{join}: {', '.join(texts)}"

    def _reload(self, table: KeptTable) -> None:
        every_ns = table.source.reload_every_ns
        every_s = None if every_ns is None else every_ns / 1e9
        backoff = Backoff(_BACKOFF_S_MIN, _BACKOFF_S_MAX)
        pause_s: float | None = 0.0
        while pause_s is not None and not self._stopping.wait(pause_s):
            pause_s = every_s
            try:
                self._refresh(table)
                self._loaded_s[table.join] = self._clock()
                self._faults.pop(table.join, None)
                backoff.reset()
            except Exception as error:  # noqa: BLE001 - a thread that ends would load nothing any more, and not say so
                why = str(error) if isinstance(error, BettongError) else reason_of(error)
                self._log.warning("a reference table stays as it was", table=table.join, fault=why)
                self._faults[table.join] = (self._faults.get(table.join, (self._clock(), ""))[0], why)
                retry_s = backoff.next_s()
                pause_s = retry_s if every_s is None else min(every_s, retry_s)

    def _refresh(self, table: KeptTable) -> None:
        self._begun_s[table.join] = self._clock()
        try:
            table.refresh(self._stopping.is_set)
        finally:
            self._begun_s.pop(table.join, None)


def _moment(at_s: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime(at_s))
