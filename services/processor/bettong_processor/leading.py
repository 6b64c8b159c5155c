"""Leader election: of several processors of an application one leads and folds, the others stand by, ready in seconds.

    starting ──ready──> standing by ──no leader for VACANT_S──> leading ──another one leads──> standing by

Only a ready processor takes the lead, so that a restarting one does not get it before a standby.

A leader that cannot reach Redis goes on: no other processor can take the lead there either, and if two ever fold at the
same time, the delivery rule skips the duplicates.
"""

import threading
import uuid
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Protocol, Self

from bettong.errors import StoreError
from bettong.logs import Logger

# The lease of a leader that does not renew it. Eight checks: a busy machine must not look like a dead one.
TTL_MS = 2_000
_POLL_S = 0.25
# How long there must be no leader: two of a leader's checks, so that it can renew its lease in a Redis that lost it.
VACANT_S = 0.5


class LeadLease(Protocol):
    """The lease of the leader."""

    def hold(self, process: str, *, take: bool) -> str:
        """Renews the lease, or acquires it if `take`; returns the leader, "" for none. Raises StoreError."""

    def release(self, process: str) -> None:
        """Releases the lease if this process holds it. Raises StoreError."""


@dataclass(slots=True)
class Candidate:
    """One process's view of the lease. Pure; seconds of one monotonic clock."""

    process: str
    ready: bool = False
    leads: bool = False
    leader: str = ""
    _vacant_s: float | None = field(default=None)

    def may_take(self, now_s: float) -> bool:
        """Whether to take the lead if no process has it: the leader at once, others after VACANT_S."""
        if self.leads:
            return True
        return self.ready and self._vacant_s is not None and now_s - self._vacant_s >= VACANT_S

    def observe(self, leader: str, now_s: float) -> None:
        """Takes the result of a check: the leader, "" for none."""
        self.leader = leader
        self.leads = leader == self.process
        if leader:
            self._vacant_s = None
        elif self._vacant_s is None:
            self._vacant_s = now_s


class Leading:
    """Renews the lease, or waits for it, in a thread. A context manager: leaving releases the lease."""

    def __init__(self, lease: LeadLease, instance: str, *, clock: Callable[[], float], log: Logger) -> None:
        self._lease = lease
        self._clock = clock
        self._log = log
        self._candidate = Candidate(f"{instance}/{uuid.uuid4().hex}")
        self._leads = threading.Event()
        self._stop = threading.Event()
        self._wake = threading.Event()
        self._fault: Exception | None = None
        self._thread = threading.Thread(target=self._run_guarded, name="leading", daemon=True)

    @property
    def leads(self) -> bool:
        """Whether this process leads, as of the last check. Raises the error that ended the thread."""
        return self.wait(0.0)

    @property
    def leader(self) -> str:
        """The instance that leads, as of the last check; "" for none."""
        return self._candidate.leader.partition("/")[0]

    def ready(self) -> None:
        """From now on this process may take the lead."""
        self._candidate.ready = True
        self._wake.set()

    def wait(self, seconds: float) -> bool:
        """Waits until this process leads, at most `seconds`; whether it does. Raises what ended the thread."""
        leads = self._leads.wait(seconds)
        if self._fault is not None:
            raise self._fault
        return leads

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        self._wake.set()
        self._thread.join()
        try:
            self._lease.release(self._candidate.process)
        except StoreError as error:
            self._log.debug("the lead is not given back, it ends by itself", fault=str(error))

    def _run_guarded(self) -> None:
        try:
            self._check_lead()
        except Exception as error:  # noqa: BLE001 - raised where the lead is asked for
            self._fault = error

    def _check_lead(self) -> None:
        candidate = self._candidate
        while not self._stop.is_set():
            try:
                now_s = self._clock()
                candidate.observe(
                    self._lease.hold(candidate.process, take=candidate.may_take(now_s)), self._clock()
                )
            except StoreError as error:
                self._log.debug("cannot read the leader from Redis", fault=str(error))
            if candidate.leads:
                self._leads.set()
            else:
                self._leads.clear()
            self._wake.wait(_POLL_S)
            self._wake.clear()
