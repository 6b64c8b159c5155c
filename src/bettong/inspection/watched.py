"""A deployment over time: its newest inspection, the numbers of the last one that had some, and what changed.

Pure; `bettong top` and the console show it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from bettong.inspection.accounts import AccountLine, lasting
from bettong.inspection.changes import Change, added, begun, changes_between
from bettong.inspection.deployment import Inspection
from bettong.inspection.trends import Trends, trends

# A minute of rates, one for each inspection: for a curve.
RATES_MAX = 60


@dataclass(frozen=True, slots=True)
class Watched:
    """`found`: the newest inspection. `numbers`: the newest for which Redis was there, and when (`at_s`).

    `numbers` is None before the first one. `rates`: messages/s in, of earlier inspections, the newest last.
    `accounts`: those of `numbers`, with differences only where there was one the time before, too.
    """

    found: Inspection
    numbers: Inspection | None
    at_s: float
    trends: Trends = field(default_factory=Trends)
    rates: tuple[float, ...] = ()
    changes: tuple[Change, ...] = ()
    accounts: Sequence[AccountLine] = ()


def watched(before: Watched | None, found: Inspection, *, at_s: float, unix_s: float) -> Watched:
    """With one more inspection. `at_s`: of a monotonic clock; `unix_s`: of the wall clock."""
    changes = begun(found, unix_s) if before is None else changes_between(before.found, found, unix_s)
    kept = added(before.changes if before is not None else (), changes)
    if "redis" in found.away:
        if before is None:
            return Watched(found, None, at_s, changes=kept)
        return replace(before, found=found, changes=kept)
    now = trends(before.trends if before is not None else Trends(), found, at_s)
    rates = before.rates if before is not None else ()
    if now.messages_per_s is not None:
        rates = (*rates, now.messages_per_s)[-RATES_MAX:]
    known = before.numbers.accounts if before is not None and before.numbers is not None else found.accounts
    return Watched(found, found, at_s, now, rates, kept, lasting(known, found.accounts))
