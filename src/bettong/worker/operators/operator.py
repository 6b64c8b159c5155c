"""What every computation of a stage is to the partition that runs it."""

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
        """The rows that these rows lead to. Never raises for what the user's function raises."""

    @property
    def due(self) -> Due | None:
        """Lower bounds of when something is due. Cheap: it is asked several times a record.

        None: nothing ever is, whatever comes. It is that from the beginning, or never.
        """

    def on_time(self, log_ns: int, watermark_ns: int, dead_letters: FiringDeadLetters) -> Sequence[Batch]:
        """The clocks are there: what is due fires, and leads to these rows. Called when `due` is reached; a bound
        that was too low costs a call.

        Firings go by (due time, key), and so do the rows; a batch's sources, and indexes of dead letters, count the
        firings of this call. What a firing sets for a time that has passed fires in the same call. Afterwards `due` is
        beyond both clocks. States that outlived their time to live are still there, for what was due before their end.
        Never raises for what the user's function raises.
        """

    def soonest_due(self, times: Array) -> Array | None:
        """By row of that event time: when it makes something due by the watermark, or some time before. None: at any.

        Of rows that are not late; a late one makes nothing due by the watermark before it. Asked once a frame in which
        messages are late. The nearer it is, the less often the frame is folded in parts.
        """


class OperatorParts(Protocol):
    """What operators of one partition are made of. `made`: those that come before."""

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
        """Where the fold reports how far it is."""

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
        """How it is asked whether messages of a compiled join's table delete; None where no function says it."""

    def timer_calling(self, node: Stateful, timer: StateTimer) -> Calling[Any]:
        """How the function of a timer is called."""


def failed(
    name: str,
    batch: Batch,
    results: Results,
    dead_letters: DeadLetters,
    late: Sequence[int] | Array = (),
) -> None:
    """The messages of rows that failed become dead letters, or what `on_error` says. `late`: rows counted elsewhere.

    In the order of the rows, in each execution mode: what follows `dead_letters` of one message must not depend on it.
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
    """The rows that a function made of a batch. `late`: see `failed`."""
    if results.failures:
        failed(name, batch, results, dead_letters, late)
    assert results.columns is not None  # noqa: S101 - a predicate's alone has none
    return batch.derived(results.columns, results.rows)


class WithoutTime:
    """Of a computation to which nothing is ever due."""

    due: Due | None = None

    def on_time(self, log_ns: int, watermark_ns: int, dead_letters: FiringDeadLetters) -> Sequence[Batch]:  # noqa: ARG002
        """See Operator."""
        return ()

    def soonest_due(self, times: Array) -> Array | None:
        """See Operator."""
        return np.full(len(times), NEVER, np.int64)
