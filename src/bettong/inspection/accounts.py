"""Whether anything is lost: the accounts of all partitions, from their records."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bettong import metrics
from bettong.identifiers import PartitionId
from bettong.inspection.overview import PartitionRow, Record
from bettong.worker.balance import AccountKind, Balance, PartitionAccounts, balance


@dataclass(frozen=True, slots=True)
class AccountLine:
    """What became of messages at one point of a stage: an input, a computation or an output.

    `taken` = `used` + `filtered` + `late` + `dead_letters` + `skipped`; `partly_late` are among those used. An input or
    output has used the messages that it passed on. `filtered` is None where nothing ever is, `pending` where the rest
    of the log is unknown. `differences`: what does not add up, in words.
    """

    stage: str
    kind: str
    name: str
    taken: int
    used: int
    given: int
    filtered: int | None
    late: int
    partly_late: int
    dead_letters: int
    skipped: int
    pending: int | None
    differences: tuple[str, ...]


def account_lines(
    partitions: Mapping[PartitionId, Record], rows: Sequence[PartitionRow], *, are_ends_known: bool
) -> list[AccountLine]:
    """One line for each point, by stage. `rows`: of all partitions. `are_ends_known`: whether Kafka was asked.

    Messages that were sent and are in no log differ only where all logs are folded: records are not of one moment.
    """
    accounts = {
        id_: found for id_, record in partitions.items() if (found := _accounts_in(record)) is not None
    }
    is_partial = any(
        row.offset or row.unfolded for row in rows if PartitionId(row.stage, row.partition) not in accounts
    )
    is_at_rest = are_ends_known and all(row.unfolded == 0 for row in rows)
    return [_line(each) for each in balance(accounts, is_at_rest=is_at_rest, is_partial=is_partial)]


def shown(found: Sequence[AccountLine]) -> list[AccountLine]:
    """The lines to show: all but the input of messages of unknown streams, while there are none."""
    return [line for line in found if line.kind != "input" or line.taken or line.name != "?"]


def differences(found: Sequence[AccountLine]) -> list[str]:
    """What does not add up, in a line each."""
    return [f"{line.stage}, {text}" for line in found for text in line.differences]


def lasting(before: Sequence[AccountLine], now: Sequence[AccountLine]) -> list[AccountLine]:
    """The lines of now, with differences only where there was one the time before, too.

    For callers that poll: output of a stage is in no log for a moment, and would count as missing.
    """
    wrong = {(line.stage, line.kind, line.name) for line in before if line.differences}
    return [
        line if (line.stage, line.kind, line.name) in wrong else replace(line, differences=()) for line in now
    ]


def _accounts_in(record: Record) -> PartitionAccounts | None:
    """None where the record has none, or another version of Bettong wrote it."""
    try:
        return PartitionAccounts.of_text(record.get(metrics.ACCOUNTS.name, ""))
    except ValueError:
        return None


def _line(of: Balance) -> AccountLine:
    counts = of.counts
    kind = "computation"
    if of.kind in (AccountKind.INPUT, AccountKind.OUTPUT):
        kind = of.kind.value
    return AccountLine(
        stage=of.stage,
        kind=kind,
        name=of.name,
        taken=counts.taken,
        used=counts.given if of.used is None else of.used,
        given=counts.given,
        filtered=of.filtered,
        late=0 if of.kind in (AccountKind.LATE, AccountKind.LATE_SIDE) else counts.late,
        partly_late=counts.partly_late,
        dead_letters=counts.dead_letters,
        skipped=counts.skipped,
        pending=of.pending,
        differences=of.differences,
    )
