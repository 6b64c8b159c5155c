"""The timetable: every fault of a spec with its time, its victims and its duration. Pure."""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from bettong.chaos.spec import ClockJump, Crowd, Cut, Delay, Kill, Nemesis, Pause, Spec, Stall, Wipe
from bettong.local.services import instances
from bettong.services import SENDER

# One fault per millisecond for an hour; a longer table is a mistake in `every_s`.
FAULTS_MAX = 3_600_000


@dataclass(frozen=True, slots=True)
class PlannedFault:
    """One fault. `for_s` is 0 for those that are over at once; `by` is the delay in ms, the jump in s, or a count.

    `pick`, in [0, 1), chooses one of a target's processes. `row`: see `Crowd`.
    """

    number: int
    at_s: float
    kind: str
    targets: tuple[str, ...]
    for_s: float
    by: float
    pick: float
    row: str = ""

    @property
    def label(self) -> str:
        """Its kind and victims, as reports group by it."""
        return " ".join([self.kind, " + ".join(self.targets)]) if self.targets else self.kind

    def __str__(self) -> str:
        lasting = f" for {self.for_s:.2f} s" if self.for_s else ""
        by = {
            "delay": f" by {self.by:g} ms",
            "clock": f" by {self.by:+.3f} s",
            "stall": f" of {self.by:g} subscribers",
            "crowd": f" of {self.by:g} streams",
        }.get(self.kind, "")
        return f"{self.at_s:8.3f} s  #{self.number:<4} {self.label}{by}{lasting}"


def timetable(spec: Spec) -> tuple[PlannedFault, ...]:
    """Every fault of the spec, by time. The same spec has the same table."""
    return planned(spec.nemeses, spec.seed, spec.duration_s, instances(SENDER, spec.workload.senders))


def planned(
    nemeses: Sequence[Nemesis], seed: int, duration_s: float, senders: tuple[str, ...] = (SENDER.name,)
) -> tuple[PlannedFault, ...]:
    """Every fault of these, by time; each nemesis draws on its own. `senders`: those whose clocks may go wrong."""
    found: list[tuple[float, int, int, Nemesis, random.Random]] = []
    for index, nemesis in enumerate(nemeses):
        chance = random.Random(f"{seed}/{index}/{nemesis.kind}")  # noqa: S311 - repeatable is the point
        for count, at_s in enumerate(_times(nemesis, chance, duration_s)):
            found.append((at_s, index, count, nemesis, chance))
    # Drawn in the order of each nemesis, numbered in the order of time.
    drawn = [
        (at_s, index, count, _draw(nemesis, chance, senders)) for at_s, index, count, nemesis, chance in found
    ]
    return tuple(
        PlannedFault(number, round(at_s, 3), *rest)
        for number, (at_s, _, _, rest) in enumerate(sorted(drawn, key=lambda each: each[:3]), 1)
    )


def _times(nemesis: Nemesis, chance: random.Random, duration_s: float) -> list[float]:
    until_s = min(duration_s, nemesis.until_s if nemesis.until_s is not None else duration_s)
    if nemesis.at_s is not None:
        return sorted(at_s for at_s in nemesis.at_s if nemesis.from_s <= at_s <= until_s)
    assert nemesis.every_s is not None  # noqa: S101 - the spec is checked
    times: list[float] = []
    at_s = nemesis.from_s + chance.uniform(*nemesis.every_s)
    while at_s <= until_s and len(times) < FAULTS_MAX:
        times.append(at_s)
        at_s += max(0.001, chance.uniform(*nemesis.every_s))
    return times


def _draw(
    nemesis: Nemesis, chance: random.Random, senders: tuple[str, ...]
) -> tuple[str, tuple[str, ...], float, float, float, str]:
    """Kind, targets, for_s, by, pick and row."""
    targets: tuple[str, ...] = ()
    for_s = by = 0.0
    if isinstance(nemesis, Kill | Pause):
        targets = tuple(chance.sample(sorted(set(nemesis.targets)), nemesis.together))
    elif isinstance(nemesis, Cut | Delay):
        targets = (chance.choice(sorted(set(nemesis.links))),)
    if not isinstance(nemesis, Kill | Wipe):
        for_s = round(chance.uniform(*nemesis.for_s), 3)
    if isinstance(nemesis, Delay):
        by = nemesis.by_ms
    if isinstance(nemesis, ClockJump):
        by = round(chance.uniform(*nemesis.by_s), 3)
    if isinstance(nemesis, Stall):
        by = nemesis.subscribers
    if isinstance(nemesis, Crowd):
        by = nemesis.streams
    pick = chance.random()
    if isinstance(nemesis, ClockJump) and len(senders) > 1:
        targets = (senders[int(pick * len(senders))],)
    row = (nemesis.row or "") if isinstance(nemesis, Crowd) else ""
    return nemesis.kind, tuple(str(target) for target in targets), for_s, by, pick, row
