"""The interface of operators: what a partition calls of each computation of its stage."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from operator import itemgetter
from typing import Any, Protocol

import numpy as np

from bettong.application.joins.joined import Joined
from bettong.application.nodes.stateful import Stateful
from bettong.application.nodes.stateless import Stateless
from bettong.application.timers import NEVER, StateTimer
from bettong.frames.columns import Array
from bettong.worker.batch import Batch
from bettong.worker.calling.compiled import PairCalling
from bettong.worker.calling.results import Calling, Results
from bettong.worker.due import Due
from bettong.worker.output.dead_letters import DeadLetters, FiringDeadLetters
from bettong.worker.progress import FoldProgress
from bettong.worker.references.versions import References
from bettong.worker.state.table import StateTable


class Operator(Protocol):
    """One computation of a stage."""

    name: str

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """The rows that result from these rows. Never raises for what the user's function raises."""

    @property
    def due(self) -> Due | None:
        """Lower bounds of when a timer is due. Cheap: it is read several times a record.

        None: the operator has no timers, for as long as it lives.
        """

    def on_time(self, log_ns: int, watermark_ns: int, dead_letters: FiringDeadLetters) -> Sequence[Batch]:
        """Fires the timers that are due when the clocks reach these times; returns their rows. Called when `due` is
        reached; a bound that was too low costs a call.

        Firings are sorted by (due time, key), and so are the rows; a batch's sources, and indexes of dead letters,
        count the firings of this call. A timer that a firing sets to a time that has passed fires in the same call.
        Afterwards `due` is beyond both clocks. States whose time to live is over still exist, for timers that were due
        before their end. Never raises for what the user's function raises.
        """

    def soonest_due(self, times: Array) -> Array | None:
        """By row of that event time, a lower bound of the event-time timers that it sets. None: it may set any.

        Holds for rows that are not late; a late one sets no timer up to the watermark before it. Called once for each
        frame with late messages. The tighter the bound, the less often the frame is folded in parts.
        """


class OperatorParts(Protocol):
    """What operators of one partition are made from. `made`: the operators before."""

    @property
    def tables(self) -> Mapping[str, StateTable]:
        """The states of each computation."""

    @property
    def needs_each_watermark(self) -> bool:
        """See Stage."""

    @property
    def references(self) -> References:
        """The reference tables as they are in the partition."""

    @property
    def progress(self) -> FoldProgress:
        """Where the fold reports its progress."""

    @property
    def made(self) -> Mapping[str, Operator]:
        """The operators before this one, by computation."""

    def calling(self, node: Stateless) -> Calling[None]:
        """How a function without state is called."""

    def stateful_calling(self, node: Stateful) -> Calling[Any]:
        """How the functions that change states are called."""

    def pair_calling(self, node: Joined) -> PairCalling:
        """How the function of a compiled join is called."""

    def deletes_calling(self, node: Joined) -> Calling[None] | None:
        """How the predicate is called that says whether a message of a compiled join's table deletes; None without."""

    def timer_calling(self, node: Stateful, timer: StateTimer) -> Calling[Any]:
        """How the function of a timer is called."""


def add_failures(
    name: str,
    batch: Batch,
    results: Results,
    dead_letters: DeadLetters,
    late: Sequence[int] | Array = (),
) -> None:
    """Turns rows that failed into dead letters, or as `on_error` says. `late`: rows counted elsewhere.

    In the order of the rows, so that the stream `dead_letters` is the same in each execution mode.
    """
    counted = {int(row) for row in late}
    for row, reason in sorted(results.failures, key=itemgetter(0)):
        dead_letters.add(name, reason, batch.source(row), is_counted=row not in counted)
        counted.add(row)


def derived(
    name: str,
    batch: Batch,
    results: Results,
    dead_letters: DeadLetters,
    late: Sequence[int] | Array = (),
) -> Batch:
    """The rows that a function made of a batch. `late`: see `add_failures`."""
    if results.failures:
        add_failures(name, batch, results, dead_letters, late)
    assert results.columns is not None  # noqa: S101 - only a predicate's results have none
    return batch.derived(results.columns, results.rows)


class WithoutTime:
    """Base of operators without timers."""

    due: Due | None = None

    def on_time(self, log_ns: int, watermark_ns: int, dead_letters: FiringDeadLetters) -> Sequence[Batch]:  # noqa: ARG002
        """See Operator."""
        return ()

    def soonest_due(self, times: Array) -> Array | None:
        """See Operator."""
        return np.full(len(times), NEVER, np.int64)
