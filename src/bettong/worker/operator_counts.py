"""Adds what operators count themselves to the partition's counters and the operators' accounts."""

from __future__ import annotations

from collections.abc import Iterable

from bettong.v1.snapshot_pb2 import Counters
from bettong.worker.accounts import Account
from bettong.worker.joins.late_sides import LateSides
from bettong.worker.operators.branch import BranchOperator
from bettong.worker.operators.column_join import ColumnJoinOperator
from bettong.worker.operators.column_window import ColumnWindowOperator
from bettong.worker.operators.join import JoinOperator
from bettong.worker.operators.local import LocalOperator
from bettong.worker.operators.operator import Operator
from bettong.worker.operators.window import WindowOperator
from bettong.worker.windows.late_rows import LateRows


class OperatorCounts:
    """The operators of one partition that count, each with its account. `are_any`: whether there are any."""

    def __init__(self, operators: Iterable[tuple[Operator, Account]], counters: Counters) -> None:
        self._counters = counters
        self._judging: list[tuple[LateRows | LateSides, Account]] = []
        self._branches: list[tuple[BranchOperator, Account]] = []
        self._combining: list[tuple[LocalOperator, Account]] = []
        for operator, account in operators:
            if isinstance(operator, WindowOperator | ColumnWindowOperator):
                self._judging.append((operator.late_rows, account))
            elif isinstance(operator, JoinOperator | ColumnJoinOperator):
                self._judging.append((operator.late_sides, account))
            elif isinstance(operator, BranchOperator):
                self._branches.append((operator, account))
            elif isinstance(operator, LocalOperator):
                self._combining.append((operator, account))
        self.are_any = bool(self._judging or self._branches or self._combining)

    def take_over(self) -> None:
        """Adds what they have counted since the last call, and resets it."""
        for late, account in self._judging:
            if late.late or late.partly_late:
                self._counters.late += late.late
                self._counters.partly_late += late.partly_late
                account.late += late.rows
                account.partly_late += late.partly_late_rows
                late.late = late.partly_late = late.rows = late.partly_late_rows = 0
        for branch, account in self._branches:
            # The account counts only what earlier branches have left.
            account.taken -= branch.rows_before
            account.left += branch.rows_left
            branch.rows_before = branch.rows_left = 0
        for combining, account in self._combining:
            account.combined += combining.combined
            combining.combined = 0
