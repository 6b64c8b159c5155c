"""What every computation of a stage is to the partition that runs it."""

from collections.abc import Sequence
from typing import Protocol

from bettong.worker.batch import Batch
from bettong.worker.calling.results import Results
from bettong.worker.due import Due
from bettong.worker.output.dead_letters import DeadLetters, FiringDeadLetters


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


def failed(name: str, batch: Batch, results: Results, dead_letters: DeadLetters) -> None:
    """The messages of rows that failed become dead letters, or what `on_error` says."""
    for row, reason in results.failures:
        dead_letters.add(name, reason, batch.source(row))


def derived(name: str, batch: Batch, results: Results, dead_letters: DeadLetters) -> Batch:
    """The rows that a function made of a batch."""
    if results.failures:
        failed(name, batch, results, dead_letters)
    assert results.columns is not None  # noqa: S101 - a predicate's alone has none
    return batch.derived(results.columns, results.rows)


class WithoutTime:
    """Of a computation to which nothing is ever due."""

    due: Due | None = None

    def on_time(self, log_ns: int, watermark_ns: int, dead_letters: FiringDeadLetters) -> Sequence[Batch]:  # noqa: ARG002
        """See Operator."""
        return ()
