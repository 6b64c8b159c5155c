"""What a chaos run reports in the end, as values that JSON holds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from bettong.chaos.nemeses import Injected
from bettong.chaos.outputs import Difference
from bettong.chaos.recovery import Recovery, middle_and_most

_DIFFERENCES_MAX = 20  # of each sink; the sums count all


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class FaultReport(_Part):
    """One fault. `at_s` counts from the start of the run. `missed`: why nothing was done, if so.

    `streams`: of a crowd, those that were opened and ended, their messages with a receipt.
    """

    number: int
    at_s: float
    kind: str
    for_s: float
    by: float
    victims: tuple[int, ...]
    missed: str
    streams: int
    recovery_s: float | None
    alone: bool


class KindReport(_Part):
    """All faults of a kind. Median and most over those that no other fault met; `together`: how many were met."""

    kind: str
    injected: int
    missed: int
    not_recovered: int
    measured: int
    together: int
    recovery_p50_s: float | None
    recovery_max_s: float | None


class SinkReport(_Part):
    """What a sink gave on one channel: the receiver's files, or a subscriber."""

    sink: str
    channel: Literal["files", "subscriber"]
    compare: str
    expected: int
    found: int
    lost: int
    doubled: int
    unexpected: int
    misplaced: int
    differences: list[dict[str, str | int]]

    @property
    def right(self) -> bool:
        """Whether it equals the golden output."""
        return not (self.lost or self.doubled or self.unexpected or self.misplaced)


class MemoryReport(_Part):
    """The largest that one process of a kind was, and what it may be."""

    process: str
    peak_mb: float
    bound_mb: float


class GrowthReport(_Part):
    """By how much a metric grew over the run, as a part of its median, with the 95 % interval.

    `bound`: the most that `high` may be; None where the spec asks for nothing. `points`: what the line goes through, of
    20 stretches of the part of the run that counts.
    """

    metric: str
    unit: str
    median: float
    share: float
    low: float
    high: float
    bound: float | None
    points: list[float] = Field(default_factory=list)

    @property
    def holds(self) -> bool:
        """Whether it is shown not to grow beyond its bound."""
        return self.bound is None or self.high <= self.bound


class Report(_Part):
    """A run. `broken` names every invariant that does not hold; empty, the run is a success.

    `latency_p50_s`: from when a message was due to its result at a subscriber, before the first fault. Every recovery
    includes as much.
    """

    name: str
    application: str
    seed: int
    started: str
    machine: str
    duration_s: float
    messages: int
    golden: str
    faults: list[FaultReport]
    kinds: list[KindReport]
    latency_p50_s: float | None
    sinks: list[SinkReport]
    memory: list[MemoryReport]
    growth: list[GrowthReport]
    not_tried: dict[str, str]
    events: list[str]
    broken: list[str]

    @property
    def injected(self) -> int:
        """Faults that were done."""
        return sum(not fault.missed for fault in self.faults)


def fault_report(injected: Injected, recovery: Recovery | None, start_s: float) -> FaultReport:
    """A fault as it stands in a report."""
    fault = injected.fault
    return FaultReport(
        number=fault.number,
        at_s=round(injected.begun_s - start_s, 3),
        kind=fault.label,
        for_s=fault.for_s,
        by=fault.by,
        victims=injected.victims,
        missed=injected.missed,
        streams=injected.streams,
        recovery_s=round(recovery.seconds, 3)
        if recovery is not None and recovery.seconds is not None
        else None,
        alone=recovery is not None and recovery.alone,
    )


def by_kind(faults: Sequence[FaultReport]) -> list[KindReport]:
    """Faults of each kind, by name."""
    found = []
    for kind in sorted({fault.kind for fault in faults}):
        mine = [fault for fault in faults if fault.kind == kind]
        done = [fault for fault in mine if not fault.missed]
        seconds = [fault.recovery_s for fault in done if fault.alone and fault.recovery_s is not None]
        measured = middle_and_most(seconds)
        found.append(
            KindReport(
                kind=kind,
                injected=len(done),
                missed=len(mine) - len(done),
                not_recovered=sum(fault.recovery_s is None for fault in done),
                measured=len(seconds),
                together=sum(not fault.alone for fault in done),
                recovery_p50_s=measured[0] if measured else None,
                recovery_max_s=measured[1] if measured else None,
            )
        )
    return found


def unmet_recoveries(faults: Sequence[FaultReport], most_s: Mapping[str, float]) -> list[str]:
    """Where faults do not keep to a spec's `recovery_s_max`, a line each: took longer, or nothing was measured."""
    lines = []
    for fault in faults:
        allowed_s, took_s = most_s.get(fault.kind), fault.recovery_s
        if not fault.alone or allowed_s is None or (took_s is not None and took_s <= allowed_s):
            continue
        took = f"recovered after {took_s:.2f} s" if took_s is not None else "not recovered from"
        lines.append(
            f"{fault.kind}, #{fault.number} at {fault.at_s:.1f} s: {took}, at most {allowed_s:g} s are allowed"
        )
    measured = {fault.kind for fault in faults if fault.alone}
    lines += [
        f"{kind}: recovery within {allowed_s:g} s is not proved, for no such fault was done that no other met"
        for kind, allowed_s in most_s.items()
        if kind not in measured
    ]
    return lines


def sink_report(
    sink: str,
    channel: Literal["files", "subscriber"],
    compare: str,
    counts: tuple[int, int],
    wrong: Sequence[Difference],
) -> SinkReport:
    """A sink as it stands in a report. `counts`: messages expected and found."""
    return SinkReport(
        sink=sink,
        channel=channel,
        compare=compare,
        expected=counts[0],
        found=counts[1],
        lost=sum(each.lost for each in wrong),
        doubled=sum(each.doubled for each in wrong),
        unexpected=sum(each.unexpected for each in wrong),
        misplaced=sum(each.misplaced for each in wrong),
        differences=[
            {
                "label": each.label,
                "lost": each.lost,
                "doubled": each.doubled,
                "unexpected": each.unexpected,
                "misplaced": each.misplaced,
            }
            for each in wrong[:_DIFFERENCES_MAX]
        ],
    )
