"""Counts what becomes of a stage's messages in one partition. A part of the fold.

Rows are counted independently at each point, once a frame: when they enter, when a computation receives and returns
them, when they leave in frames. So a row that is lost between two points makes a difference, which `balance` finds.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bettong.application.joins.joined import LateSide
from bettong.application.joins.referenced import Referenced
from bettong.application.nodes.branched import Branched
from bettong.application.nodes.computation import Computation
from bettong.application.nodes.dead_letter_messages import DeadLetterMessages
from bettong.application.nodes.stateless import Stateless
from bettong.application.plan import PlannedOperator, Stage
from bettong.application.returns import Returns
from bettong.application.windows.partials import Partials
from bettong.application.windows.windowed import LateMessages
from bettong.v1 import snapshot_pb2
from bettong.worker.balance import AccountKind, AccountRow, PartitionAccounts, RowCounts

# The input that a record counts under, as one message, when it is no frame or names no stream that enters here.
UNREADABLE = "?"

_BY_RETURNS = {Returns.ONE: AccountKind.EACH, Returns.WHETHER: AccountKind.ONE}
# A subclass not listed here counts as its base class; a stateless computation counts by what its function returns.
_KINDS: dict[type, AccountKind] = {
    Referenced: AccountKind.ONE,
    Branched: AccountKind.BRANCH,
    Partials: AccountKind.LOCAL,
    LateMessages: AccountKind.LATE,
    LateSide: AccountKind.LATE_SIDE,
    DeadLetterMessages: AccountKind.BESIDE,
    Computation: AccountKind.ANY,
}


@dataclass(slots=True)
class Account:
    """The counts of one input, computation or output. See `RowCounts`."""

    kind: AccountKind
    name: str
    reads: tuple[str, ...] = ()
    of: str = ""
    taken: int = 0
    given: int = 0
    given_by_time: int = 0
    left: int = 0
    combined: int = 0
    dead_letters: int = 0
    skipped: int = 0
    late: int = 0
    partly_late: int = 0
    firings_failed: int = 0
    before: int = 0

    def row(self) -> AccountRow:
        """The counts as they are now."""
        counts = RowCounts(*(getattr(self, name) for name in RowCounts._fields))
        return AccountRow(self.kind, self.name, self.reads, self.of, counts)


class StageAccounts:
    """The accounts of one partition, by name. A stream may be both an input and an output."""

    def __init__(self, stage: Stage) -> None:
        names = (*(entry.stream for entry in stage.inputs), UNREADABLE)
        self.inputs = {name: Account(AccountKind.INPUT, name) for name in names}
        self.computations = {each.node.name: _account(each) for each in stage.operators}
        # Messages of several schemas leave for one target.
        reads: dict[str, tuple[str, ...]] = {}
        for output in stage.outputs:
            reads[output.target.name] = (*reads.get(output.target.name, ()), *output.streams)
        self.outputs = {name: Account(AccountKind.OUTPUT, name, of) for name, of in reads.items()}
        self._since = 0
        # The last result of `text`, and its offset.
        self._text = (-1, "")
        self._shape = zlib.crc32(repr([each[:4] for each in self.now().rows]).encode())

    def now(self) -> PartitionAccounts:
        """The accounts as they are now."""
        return PartitionAccounts(
            self._since, tuple(account.row() for part in self._parts for account in part)
        )

    def text(self, offset: int) -> str:
        """As text, for the state at that offset. Made once: partitions at rest are asked all the time."""
        if self._text[0] != offset:
            self._text = (offset, self.now().text())
        return self._text[1]

    def refuse(self, stream: str, messages: int) -> None:
        """Counts messages that became dead letters before they were rows of that stream."""
        account = self.inputs.get(stream, self.inputs[UNREADABLE])
        account.taken += messages
        account.dead_letters += messages

    def note_failed(self, rows: Mapping[tuple[str, bool], int], firing: str) -> None:
        """Counts failed rows, by computation or output, and whether they were skipped. Rows of `firing` had fired."""
        for (name, is_skipped), count in rows.items():
            account = self.computations.get(name) or self.outputs[name]
            if name == firing:
                account.firings_failed += count
            elif is_skipped:
                account.skipped += count
            else:
                account.dead_letters += count

    def stored(self) -> snapshot_pb2.Accounts:
        """The accounts as a snapshot holds them."""
        inputs, computations, outputs = ([_stored(each) for each in part] for part in self._parts)
        return snapshot_pb2.Accounts(
            since=self._since, shape=self._shape, inputs=inputs, computations=computations, outputs=outputs
        )

    def load(self, stored: snapshot_pb2.Accounts | None, offset: int) -> None:
        """Restores the accounts of a snapshot at that offset, None: it has none. From 0 where the stage has changed.

        Then inputs and outputs still keep, as `before`, how many messages have passed between stages.
        """
        parts = [stored.inputs, stored.computations, stored.outputs] if stored is not None else [(), (), ()]
        self._since, self._text = offset if stored is None else stored.since, (-1, "")
        pairs = list(zip(self._parts, parts, strict=True))
        is_alike = stored is not None and stored.shape == self._shape
        if is_alike and all(len(part) == len(saved) for part, saved in pairs):
            for part, saved in pairs:
                for account, each in zip(part, saved, strict=True):
                    _load(account, each)
            return
        for part in self._parts:
            for account in part:
                _load(account, snapshot_pb2.Account())
        for accounts, saved, passed in ((self.inputs, parts[0], "taken"), (self.outputs, parts[2], "given")):
            for each in saved:
                if each.name in accounts:
                    accounts[each.name].before = each.before + getattr(each, passed)

    @property
    def _parts(self) -> tuple[Sequence[Account], ...]:
        return tuple(list(part.values()) for part in (self.inputs, self.computations, self.outputs))


def _account(planned: PlannedOperator) -> Account:
    node = planned.node
    kind = next(_KINDS[of] for of in type(node).__mro__ if of in _KINDS)
    if kind is AccountKind.ANY and isinstance(node, Stateless):
        kind = _BY_RETURNS.get(node.returns, kind)
    of = ""
    if isinstance(node, Branched) and node.previous is not None:
        of = node.previous.name
    elif isinstance(node, LateMessages):
        of = node.windowed.name
    elif isinstance(node, LateSide):
        of = node.joined.name
    return Account(kind, node.name, planned.reads, of)


def _stored(account: Account) -> snapshot_pb2.Account:
    counts = {name: getattr(account, name) for name in RowCounts._fields}
    return snapshot_pb2.Account(name=account.name, **counts)


def _load(account: Account, stored: snapshot_pb2.Account) -> None:
    for name in RowCounts._fields:
        setattr(account, name, getattr(stored, name))
