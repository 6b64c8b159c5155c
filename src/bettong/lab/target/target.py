"""Where a run takes place: the interface of a suite on this machine, and of a release on a cluster."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from bettong.chaos.growth import Sample
from bettong.chaos.log_position import LogPosition, lags
from bettong.chaos.nemeses import Injected
from bettong.lab.latency_parts import PartsSample
from bettong.lab.target.gc_pauses import GcPause
from bettong.lab.target.pauses import AssignmentChange
from bettong.lab.target.sampling import Usage
from bettong.lab.target.topics import RunTopics


@dataclass(slots=True)
class Collected:
    """What a target records while a run is measured. Complete when `collecting` exits.

    `positions`: the processor's progress, by Unix time. `parts`: of latencies; none without steps, nor on a cluster.
    `changes`: reassignments of partitions. `facts`: of the target, in addition to those of this machine.
    """

    usage: Usage = field(default_factory=Usage)
    positions: Sequence[LogPosition] = ()
    gc_pauses: Sequence[GcPause] = ()
    parts: Sequence[PartsSample] = ()
    changes: Sequence[AssignmentChange] = ()
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def lag(self) -> list[Sample]:
        """The lag in records, over time."""
        return lags(self.positions)


class RunTarget(Protocol):
    """An application that runs, ready for a load. `sender`, `receiver`: host:port. `topics`: None if it has none."""

    @property
    def sender(self) -> str:
        """The address for clients."""

    @property
    def receiver(self) -> str:
        """The address for subscribers."""

    @property
    def topics(self) -> RunTopics | None:
        """The topics that the application reads and writes by itself."""

    def await_folded(self, messages: int) -> None:
        """Blocks until so many messages are processed. Raises LateError."""

    def collecting(self, begin_s: float, *, positions_every_s: float) -> AbstractContextManager[Collected]:
        """Inside, records usage and the processor's progress. `begin_s`: Unix time."""

    def inject_faults(self, begin_s: float) -> list[Injected]:
        """Injects the run's faults, and blocks until all are over."""

    def wait(self, seconds: float) -> None:
        """Blocks for so long. Raises LocalError or ClusterError if a part of the target has failed for good."""

    def check(self) -> None:
        """Raises LocalError if a part has failed for good, which nobody need wait for. Called every few seconds."""
