"""Injects faults into a suite, each at its time."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from bettong.chaos.nemeses import Injected, Nemesis
from bettong.chaos.timetable import PlannedFault
from bettong.local.options import Restarts
from bettong.local.suite import Suite

_POLL_S = 0.5
# Allowed beyond the planned deaths: a process that cannot start again dies at least once a second.
_DEATHS_BESIDES = 30

Say = Callable[[str], None]


def restarts(faults: Sequence[PlannedFault]) -> Restarts:
    """How a suite restarts its processes under these faults."""
    # Planned deaths are no crash loop; a full disk causes one, until it has room again.
    lasting_s = sum(fault.for_s for fault in faults if fault.kind == "fill")
    return Restarts(deaths_max=len(faults) + _DEATHS_BESIDES + int(5 * lasting_s), wait_s_max=0.2)


def inject(
    faults: Sequence[PlannedFault],
    nemesis: Nemesis,
    suite: Suite,
    *,
    start_s: float,
    injected: list[Injected],
    report: Say = lambda _: None,
) -> None:
    """Begins every fault at its time, and ends it after its duration, or when it is over by itself.

    Blocks until all are over. `start_s`: the start of their times, Unix time. `injected` gets each fault as soon as it
    was tried. Raises the error that ended the suite.
    """
    waiting, lasting = list(faults), list[Injected]()
    while waiting or lasting:
        over = next((each for each in lasting if each.ended_s <= time.time() or nemesis.is_over(each)), None)
        if over is not None:
            lasting.remove(over)
            nemesis.end(over)
            done = f", {over.streams:,} of {over.fault.by:,.0f} streams" if over.streams else ""
            report(f"#{over.fault.number} {over.fault.label}: over{done}")
            continue
        begins_s = start_s + waiting[0].at_s if waiting else float("inf")
        if begins_s > time.time():
            due_s = min(begins_s, *(each.ended_s for each in lasting), time.time() + _POLL_S)
            suite.wait_with_all(max(0.0, due_s - time.time()))
            continue
        begun = nemesis.begin(waiting.pop(0))
        injected.append(begun)
        if begun.missed:
            report(f"{begun.fault}: missed, {begun.missed}")
            continue
        report(f"{begun.fault}{f' (process {begun.victims[0]})' if begun.victims else ''}")
        if begun.fault.for_s:
            lasting.append(begun)
