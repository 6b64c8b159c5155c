"""What every computation of a stage is to the partition that runs it."""

from typing import Protocol

from bettong.worker.batch import Batch
from bettong.worker.calling.results import Results
from bettong.worker.output.dead_letters import DeadLetters


class Operator(Protocol):
    """One computation of a stage."""

    name: str

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """The rows that these rows lead to. Never raises for what the user's function raises."""


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
