"""Whether accounts add up. Pure: from what was counted at each point.

Every message that a computation receives is used, filtered, late, a dead letter or skipped; what it returns, each of
its readers receives; what leaves a stage for another one is received there, or still in its log. See decision 46.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from operator import add
from typing import NamedTuple

from bettong.identifiers import PartitionId


class AccountKind(StrEnum):
    """What an account counts for.

    EACH: a computation with one result for each message. ONE: with at most one; the other messages are filtered. ANY:
    with any number, now or later. BRANCH: it receives what earlier branches have left. LOCAL: it combines messages.
    LATE: the late messages of a window, LATE_SIDE: of one side of a join. BESIDE: the messages that another refused.
    """

    INPUT = "input"
    OUTPUT = "output"
    EACH = "each"
    ONE = "one"
    ANY = "any"
    BRANCH = "branch"
    LOCAL = "local"
    LATE = "late"
    LATE_SIDE = "late side"
    BESIDE = "beside"


class RowCounts(NamedTuple):
    """Counts of rows. `taken`: received. `given`: returned; of these, no message caused the `given_by_time`.

    `dead_letters`, `skipped`: received rows of which something could not be processed, each counted once, without those
    that are `late`. `left`: rows that no branch so far has taken. `combined`: the messages in what LOCAL returned.
    `firings_failed`: timers and windows that failed. `before`: what an input received, or an output returned, before
    these accounts began.
    """

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


class AccountRow(NamedTuple):
    """One account. `reads`: the streams received. `of`: the branch before it; the window or join of late ones."""

    kind: AccountKind
    name: str
    reads: tuple[str, ...]
    of: str
    counts: RowCounts


@dataclass(frozen=True, slots=True)
class PartitionAccounts:
    """The accounts of one partition, kept since offset `since`."""

    since: int
    rows: tuple[AccountRow, ...]

    def text(self) -> str:
        """As JSON, for `of_text`."""
        return json.dumps([self.since, *self.rows], separators=(",", ":"))

    @classmethod
    def of_text(cls, text: str) -> PartitionAccounts:
        """Reads what `text` returned. Raises ValueError for any other text."""
        try:
            since, *rows = json.loads(text)
            found = [
                AccountRow(AccountKind(kind), name, tuple(reads), of, RowCounts(*map(int, counts)))
                for kind, name, reads, of, counts in rows
            ]
            return cls(int(since), tuple(found))
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise ValueError(f"not the text of accounts: {error}") from None


@dataclass(frozen=True, slots=True)
class Balance:
    """An account, summed over all partitions of a stage. `used`, `filtered`: messages; None where it does not apply.

    `pending`: messages that wait in the stage's log; None where nobody counts what was sent. `differences`: what does
    not add up, in words.
    """

    stage: str
    kind: AccountKind
    name: str
    counts: RowCounts
    used: int | None
    filtered: int | None
    pending: int | None
    differences: tuple[str, ...]


def balance(
    partitions: Mapping[PartitionId, PartitionAccounts], *, is_at_rest: bool, is_partial: bool = False
) -> list[Balance]:
    """The accounts of each stage, in the order in which rows pass stages and computations.

    `is_at_rest`: whether all that was sent has been received, or is lost. `is_partial`: whether partitions may be
    missing: then messages between stages are not checked.
    """
    summed: dict[tuple[str, AccountKind, str], RowCounts] = {}
    wrong: dict[tuple[str, AccountKind, str], list[str]] = {}
    for id_, each in sorted(partitions.items()):
        by_name = {row.name: row for row in each.rows if row.kind is not AccountKind.OUTPUT}
        for row in each.rows:
            key = (id_.stage, row.kind, row.name)
            summed[key] = RowCounts(*map(add, summed.get(key, RowCounts()), row.counts))
            found = (f"partition {id_.partition}: {text}" for text in _differences(row, by_name))
            wrong.setdefault(key, []).extend(found)
    # A partition that began to count later than others has seen fewer messages.
    is_known = not is_partial and not any(each.since for each in partitions.values())
    pending = _pending(summed) if is_known else {}
    for key, count in pending.items():
        if is_at_rest and count:
            wrong[key].append(_difference_between_stages(key[2], count))
    return [
        _balanced(key, counts, max(0, pending[key]) if key in pending else None, tuple(wrong[key]))
        for stage in _in_order(summed)
        for key, counts in summed.items()
        if key[0] == stage
    ]


def differences(found: Iterable[Balance]) -> list[str]:
    """What does not add up, one line each."""
    return [f"{each.stage}, {text}" for each in found for text in each.differences]


def _in_order(keys: Iterable[tuple[str, AccountKind, str]]) -> list[str]:
    """Each stage after those that send to it; in a cycle, the one with the fewest senders to come is next."""
    known = list(keys)
    senders = {name: stage for stage, kind, name in known if kind is AccountKind.OUTPUT}
    waiting = {stage: set[str]() for stage, _, _ in known}
    for stage, kind, name in known:
        if kind is AccountKind.INPUT and (sender := senders.get(name, stage)) != stage:
            waiting[stage].add(sender)
    found: list[str] = []
    while waiting:
        stage = min(waiting, key=lambda each: (len(waiting[each].difference(found)), each))
        found.append(stage)
        del waiting[stage]
    return found


def _pending(
    summed: Mapping[tuple[str, AccountKind, str], RowCounts],
) -> dict[tuple[str, AccountKind, str], int]:
    """By input that stages send to: how many messages were sent and not received yet."""
    sent: dict[str, int] = {}
    for (_, kind, name), counts in summed.items():
        if kind is AccountKind.OUTPUT:
            sent[name] = sent.get(name, 0) + counts.given + counts.before
    return {
        key: sent[key[2]] - counts.taken - counts.before
        for key, counts in summed.items()
        if key[1] is AccountKind.INPUT and key[2] in sent
    }


def _balanced(
    key: tuple[str, AccountKind, str], counts: RowCounts, pending: int | None, wrong: tuple[str, ...]
) -> Balance:
    stage, kind, name = key
    used: int | None = None
    filtered: int | None = None
    if kind is AccountKind.EACH:
        used = counts.given
    elif kind is AccountKind.ONE:
        used, filtered = counts.given, counts.taken - counts.given - _refused(counts)
    elif kind is AccountKind.BRANCH:
        used, filtered = counts.given, counts.left
    elif kind in (AccountKind.ANY, AccountKind.LOCAL):
        used = counts.taken - counts.late - _refused(counts)
    return Balance(stage, kind, name, counts, used, filtered, pending, wrong)


def _differences(row: AccountRow, others: Mapping[str, AccountRow]) -> Iterator[str]:
    """What does not add up within an account, and between it and those that it reads."""
    kind, counts = row.kind, row.counts
    if kind is not AccountKind.INPUT:
        sent = (
            others[row.of].counts.left
            if kind is AccountKind.BRANCH and row.of
            else sum(others[name].counts.given for name in row.reads)
        )
        if sent != counts.taken:
            whose = row.of if kind is AccountKind.BRANCH and row.of else ", ".join(row.reads)
            yield f"{row.name} took {counts.taken:,} of the {sent:,} messages that {whose} gave"
    used = {
        AccountKind.INPUT: counts.given,
        AccountKind.OUTPUT: counts.given,
        AccountKind.EACH: counts.given,
        AccountKind.BRANCH: counts.given + counts.left,
        AccountKind.LOCAL: counts.combined,
    }.get(kind)
    if used is not None and used + _refused(counts) != counts.taken:
        yield f"{row.name} took {counts.taken:,} messages, and accounts for {used + _refused(counts):,}"
    elif kind is AccountKind.ONE and counts.given + _refused(counts) > counts.taken:
        yield f"{row.name} took {counts.taken:,} messages, and accounts for {counts.given + _refused(counts):,}"
    elif kind is AccountKind.ANY and counts.late + _refused(counts) > counts.taken:
        yield f"{row.name} took {counts.taken:,} messages, and more were late or could not be processed"
    late = others[row.of].counts.late if kind in (AccountKind.LATE, AccountKind.LATE_SIDE) else counts.given
    # The late messages of only one side of a join may be read.
    if counts.given > late or (kind is AccountKind.LATE and counts.given < late):
        yield f"{late:,} messages were late for {row.of}, and {row.name} gave {counts.given:,}"


def _refused(counts: RowCounts) -> int:
    return counts.dead_letters + counts.skipped


def _difference_between_stages(stream: str, pending: int) -> str:
    if pending > 0:
        return f"{pending:,} messages sent to {stream} were not received and are in no log: they are lost"
    return f"{stream} received {-pending:,} messages more than were sent to it"
