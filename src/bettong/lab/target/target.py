"""Where a run takes place: what a target gives to it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from typing import Protocol

from bettong.chaos.growth import Sample
from bettong.chaos.log_position import LogPosition, lags
from bettong.chaos.nemeses import Injected
from bettong.lab.target.gc_pauses import GcPause
from bettong.lab.target.pauses import AssignmentChange
from bettong.lab.target.sampling import Usage
from bettong.lab.target.topics import RunTopics


@dataclass(slots=True)
class Collected:
    """What a target noted while a run was measured. Whole when `collecting` is left.

    `positions`: how far the processor was, by Unix time. `changes`: partitions were assigned anew. `facts`: what it is,
    beyond this machine.
    """

    usage: Usage = field(default_factory=Usage)
    positions: Sequence[LogPosition] = ()
    gc_pauses: Sequence[GcPause] = ()
    changes: Sequence[AssignmentChange] = ()
    facts: Mapping[str, str] = field(default_factory=dict)

    @property
    def lag(self) -> list[Sample]:
        """Records not yet folded."""
        return lags(self.positions)


class RunTarget(Protocol):
    """All of an application, ready to be fed. `sender`, `receiver`: host:port. `topics`: None where it has none."""

    @property
    def sender(self) -> str:
        """Where clients send to."""

    @property
    def receiver(self) -> str:
        """Where subscribers read."""

    @property
    def topics(self) -> RunTopics | None:
        """Those that the application reads and writes by itself."""

    def await_folded(self, messages: int) -> None:
        """Blocks until so many are folded. Raises LateError."""

    def collecting(self, begin_s: float, *, positions_every_s: float) -> AbstractContextManager[Collected]:
        """Inside, what is used, and how far the processor is, is noted. `begin_s`: Unix time."""

    def disturb(self, begin_s: float) -> list[Injected]:
        """Does the run's faults, and blocks until all are over."""

    def rest(self, seconds: float) -> None:
        """Blocks for so long. Raises LocalError, or ClusterError, where a part of it is gone for good."""
