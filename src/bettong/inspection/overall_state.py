"""Is it alive? A state in a word with its reason, and the problems that need a person. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bettong.inspection.accounts import AccountLine, differences
from bettong.inspection.deployment import Inspection
from bettong.inspection.measures import Measures
from bettong.inspection.objective import AboveObjective
from bettong.inspection.overview import PartitionRow, stands_still
from bettong.inspection.services import DOWN, GIVEN_UP, RUNNING, SILENT, ServiceRow
from bettong.listing import first_texts
from bettong.metrics import STANDBY

# Shorter lags are not reported: such a burst is over before anybody has read of it.
BEHIND_S_MIN = 10.0
# More partitions are only counted, to keep the line short.
_NAMED_MAX = 3


class Level(StrEnum):
    """The severity."""

    GOOD = "good"
    NOTICE = "notice"
    BAD = "bad"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Need:
    """A problem that needs a person: what is wrong, and what to do. `about`: its stable identity."""

    level: Level
    about: str
    what: str
    remedy: str


@dataclass(frozen=True, slots=True)
class OverallState:
    """A word and its reason, a sentence."""

    level: Level
    word: str
    reason: str


def needs(
    found: Inspection,
    measured: Measures,
    accounts: Sequence[AccountLine] = (),
    above: AboveObjective | None = None,
) -> list[Need]:
    """The worst first. `above`: as of the time of `measured`."""
    every = [
        *_of_services(found),
        *_of_partitions(found),
        *_of_accounts(accounts),
        *_of_lag(measured),
        *_of_latency(above, measured.time_s),
        *_of_messages(found),
    ]
    order = (Level.BAD, Level.UNKNOWN, Level.NOTICE, Level.GOOD)
    return sorted(every, key=lambda need: order.index(need.level))


def overall_state(found: Inspection, measured: Measures) -> OverallState:
    """The state of the whole deployment."""
    down = [row for row in found.services if row.state in {DOWN, GIVEN_UP, SILENT}]
    still = [row for row in found.partitions if stands_still(row)]
    other = [row for row in found.services if row.state not in {RUNNING, STANDBY}]
    if down and len(down) == len(found.services):
        return OverallState(Level.BAD, "Down", "no service reports that it runs")
    if down:
        return OverallState(Level.BAD, "Degraded", f"{_services(down)}")
    if still:
        return OverallState(
            Level.BAD,
            "Stands still",
            _partitions(len(still), len(found.partitions), "does not move", "do not move"),
        )
    if found.overview.gaps:
        return OverallState(
            Level.BAD,
            "Waits",
            _partitions(
                len(found.overview.gaps),
                len(found.partitions),
                "waits for a lost frame",
                "wait for lost frames",
            ),
        )
    if unheard := [row for row in found.services if row.unheard_s is not None]:
        return OverallState(Level.NOTICE, "Unsure", f"{_unheard(unheard)}")
    if other:
        return OverallState(Level.NOTICE, other[0].state.capitalize(), _services(other))
    if found.unknown:
        return OverallState(Level.UNKNOWN, "Unknown", found.unknown[0])
    if measured.lag_s is not None and measured.lag_s >= BEHIND_S_MIN:
        return OverallState(
            Level.NOTICE, "Behind", f"a record has waited for {measured.lag_s:,.0f} s in the log"
        )
    if measured.in_per_s == 0.0 and measured.lag == 0:
        return OverallState(Level.GOOD, "Idle", "all services run, and no messages arrive")
    return OverallState(
        Level.GOOD, "Running", f"all {len(found.services)} services run, and no partition is stuck"
    )


def remedy_of_still(row: PartitionRow) -> str:
    """What to do about a partition that stands still."""
    nobody = row.stalled_s == math.inf
    return "start a processor, or see why it does not fold" if nobody else "see the processor's log"


def _of_services(found: Inspection) -> Iterator[Need]:
    remedies = {
        DOWN: "see its log; a suite starts it again by itself",
        GIVEN_UP: "fix the cause, then bettong down and bettong up",
        SILENT: "see whether its process and its network are alive",
    }
    for row in found.services:
        if row.state in remedies:
            yield Need(Level.BAD, f"service {row.name}", _services([row]), remedies[row.state])
        elif row.unheard_s is not None:
            remedy = "wait a moment: it comes back, or counts as silent"
            yield Need(Level.NOTICE, f"service {row.name}", _unheard([row]), remedy)
    for text in found.unknown:
        yield Need(Level.UNKNOWN, text, text, "bring it back; everything else keeps working")
    for text in found.overview.references:
        yield Need(
            Level.BAD,
            f"reference {text}",
            f"a reference table is out of date: {text}",
            "fix its source; it is loaded again by itself",
        )


def _of_partitions(found: Inspection) -> Iterator[Need]:
    still = [row for row in found.partitions if stands_still(row)]
    for row in still[:_NAMED_MAX]:
        nobody = row.stalled_s == math.inf
        long = "no worker folds it" if nobody else f"nothing folded for {row.stalled_s or 0.0:,.0f} s"
        yield Need(
            Level.BAD,
            f"{row.id} stands still",
            f"{row.stage}/{row.partition} stands still at offset {row.offset:,}: {long}, {row.lag or 0:,} records wait",
            remedy_of_still(row),
        )
    if len(still) > _NAMED_MAX:
        yield Need(
            Level.BAD,
            "more stand still",
            f"{len(still) - _NAMED_MAX:,} more partitions stand still",
            "see the partitions",
        )
    for text in found.overview.gaps[:_NAMED_MAX]:
        yield Need(
            Level.BAD,
            f"gap {text.partition(':')[0]}",
            f"waits for a lost frame: {text}",
            "restart its client: it sends the frame again",
        )
    for text in found.overview.left_out[:_NAMED_MAX]:
        yield Need(
            Level.NOTICE,
            f"left out {text}",
            f"skipped because it killed workers: {text}",
            "fix the code; see its dead letter",
        )
    for text in found.overview.skews[:_NAMED_MAX]:
        yield Need(Level.NOTICE, "skew", f"skew: {text}", "see the partitions")
    yield from _of_snapshots(found)
    if found.overview.shared:
        count = len(found.overview.shared)
        yield Need(
            Level.NOTICE,
            "shared CPUs",
            f"{count:,} partitions are folded on shared CPUs",
            "give the workers CPUs of their own",
        )


def _of_snapshots(found: Inspection) -> Iterator[Need]:
    faults = [row for row in found.partitions if row.snapshot_fault]
    if faults:
        named = _partitions(len(faults), len(found.partitions), "is not saved", "are not saved")
        yield Need(
            Level.NOTICE,
            "snapshots",
            f"{named}: {faults[0].snapshot_fault}",
            "bring the snapshot store back; results continue, but a recovery takes longer until then",
        )


def _of_accounts(accounts: Sequence[AccountLine]) -> Iterator[Need]:
    wrong = differences(accounts)
    for text in wrong[:_NAMED_MAX]:
        yield Need(
            Level.BAD,
            "accounts",
            f"the accounts do not add up: {text}",
            'see the accounts; docs/operations.md, "Is anything lost?", explains each difference',
        )
    if len(wrong) > _NAMED_MAX:
        yield Need(Level.BAD, "accounts", f"{len(wrong) - _NAMED_MAX:,} more differences", "see the accounts")


def _of_lag(measured: Measures) -> Iterator[Need]:
    behind = [each for each in measured.stages if each.lag_s is not None and each.lag_s >= BEHIND_S_MIN]
    for stage in behind[:_NAMED_MAX]:
        yield Need(
            Level.NOTICE,
            f"lag {stage.row.stage}",
            f"stage {stage.row.stage} is {stage.lag_s or 0.0:,.0f} s behind its log",
            "add cores to the processor, or see which partition takes most",
        )


def _of_latency(above: AboveObjective | None, at_s: float) -> Iterator[Need]:
    if above is not None and above.lasts(at_s):
        yield Need(
            Level.NOTICE,
            "objective",
            f"the p99 from client to delivery is {above.p99_ms:,.1f} ms, above the objective of"
            f" {above.objective_ms:,.1f} ms for {(at_s - above.since_s) / 60:,.0f} min",
            "see the application: its slowest part, and which part of the latency is the largest; with a lag: add"
            " cores to the processor",
        )


def _of_messages(found: Inspection) -> Iterator[Need]:
    if found.overview.dead_letters:
        last = f"; the last: {found.overview.dead_letter_last}" if found.overview.dead_letter_last else ""
        yield Need(
            Level.NOTICE,
            "dead letters",
            f"{found.overview.dead_letters:,} message{'s' if found.overview.dead_letters > 1 else ''} could not be"
            f" processed{last}",
            "see the dead letters; bettong dead-letters retry sends them again",
        )


def _partitions(count: int, total: int, one: str, many: str) -> str:
    return f"{count:,} of {total:,} partitions {one if count == 1 else many}"


def _unheard(rows: Sequence[ServiceRow]) -> str:
    named = [f"{row.name}: no report for {row.unheard_s or 0.0:.1f} s" for row in rows]
    return first_texts(named, _NAMED_MAX)


def _services(rows: Sequence[ServiceRow]) -> str:
    named = [f"{row.name}: {row.state}" + (f", {row.detail}" if row.detail else "") for row in rows]
    return first_texts(named, _NAMED_MAX)
