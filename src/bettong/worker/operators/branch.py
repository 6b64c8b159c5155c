"""`Stream.branch`: each message goes to the first branch whose predicate is true."""

from __future__ import annotations

import numpy as np

from bettong.application.nodes.branched import Branched
from bettong.worker.batch import Batch
from bettong.worker.calling.results import Calling
from bettong.worker.operators.operator import Operator, OperatorParts, WithoutTime, add_failures
from bettong.worker.output.dead_letters import DeadLetters


def branch_operator(node: Branched, parts: OperatorParts) -> Operator:
    """The operator of one branch."""
    previous = parts.made[node.previous.name] if node.previous is not None else None
    assert isinstance(previous, BranchOperator | None)  # noqa: S101 - it is of a branch
    return BranchOperator(node.name, parts.calling(node), previous)


class BranchOperator(WithoutTime):
    """See Operator. `previous`: the operator of the branch before, which reads the same rows, and runs first.

    `left`: the rows of the last batch that went neither to this branch nor to one before it. Since the caller last set
    these to 0: `rows_left` counts such rows, `rows_before` the rows that went to branches before this one.
    """

    def __init__(self, name: str, calling: Calling[None], previous: BranchOperator | None) -> None:
        self.name = name
        self.left: Batch | None = None
        self.rows_left = self.rows_before = 0
        self._calling = calling
        self._previous = previous

    def on_batch(self, batch: Batch, dead_letters: DeadLetters) -> Batch:
        """See Operator. A message for which a predicate raises goes to no branch."""
        arriving = batch if self._previous is None else self._previous.left
        assert arriving is not None  # noqa: S101 - the branch before has had this batch
        self.rows_before += batch.length - arriving.length
        if not arriving.length:
            self.left = arriving
            return arriving
        results = self._calling.call(arriving, None)
        add_failures(self.name, arriving, results, dead_letters)
        assert results.rows is not None  # noqa: S101 - a predicate's results say which rows are kept
        is_left = np.ones(arriving.length, np.bool_)
        is_left[results.rows] = False
        is_left[[row for row, _ in results.failures]] = False
        self.left = arriving.take(np.flatnonzero(is_left))
        self.rows_left += self.left.length
        return arriving.take(results.rows)
