"""The report of a chaos run, as values for JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

from bettong.chaos.nemeses import Injected
from bettong.chaos.outputs import Difference
from bettong.chaos.recovery import Recovery, median_and_max

_DIFFERENCES_MAX = 20  # of each sink; the sums count all


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True)


class FaultReport(_Part):
    """One fault. `at_s` counts from the start of the run. `missed`: why it was not carried out, if so.

    `streams`: of a crowd, those that were opened and ended, with their messages acknowledged.
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
    """All faults of a kind. Median and maximum of those that no other fault overlapped; `together`: the others."""

    kind: str
    injected: int
    missed: int
    not_recovered: int
    measured: int
    together: int
    recovery_p50_s: float | None
    recovery_max_s: float | None


class SinkReport(_Part):
    """The output of a sink on one channel: the receiver's files, or a subscriber."""

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
    """The peak memory of one process of a kind, and its bound."""

    process: str
    peak_mb: float
    bound_mb: float


class GrowthReport(_Part):
    """A metric's growth over the run, relative to its median, with the 95 % interval.

    `bound`: the most that `high` may be; None where the spec has none. `points`: the values that the line is fitted to,
    of 20 stretches of the part of the run that counts.
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
        """Whether the run shows that it does not grow beyond its bound."""
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
        """The number of faults that were carried out."""
        return sum(not fault.missed for fault in self.faults)


def fault_report(injected: Injected, recovery: Recovery | None, start_s: float) -> FaultReport:
    """The report of a fault."""
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
        measured = median_and_max(seconds)
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
    """Violations of a spec's `recovery_s_max`, a line each: recovery took longer, or was not measured."""
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
        f"{kind}: recovery within {allowed_s:g} s is not proved: no such fault was injected alone"
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
    """The report of a sink. `counts`: messages expected and found."""
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
