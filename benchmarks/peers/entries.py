"""Who runs a workload: Bettong's rows, then each peer that has a program for it."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version

from benchmarks import log_to_log
from benchmarks.measuring import Measurement, Sample
from benchmarks.peers import footprint, race, steady
from benchmarks.peers.bettong.contestant import BettongSuite
from benchmarks.peers.fixed_rate import FixedRate
from benchmarks.peers.load import Load
from benchmarks.peers.market_load import between_bells, market_frames
from benchmarks.peers.roster import PEERS, Peer
from benchmarks.peers.workloads import MARKET_SPREAD, PeerWorkload
from bettong.config.processor import Schedule

_BETTONG = "Bettong"
_UNIT = "messages/s"


@dataclass(frozen=True, slots=True)
class RunSize:
    """How much a run has, how wide it is, and how long it may take. `rate`: of workloads that come at one."""

    messages: int
    partitions: int
    processes: int
    s_max: float
    rate: FixedRate


_Once = Callable[[Load, RunSize], Sequence[Sample]]


@dataclass(slots=True)
class Entry:
    """Who, what it was configured to guarantee, its runs, and what ended them early.

    `once` is one run, which gives a sample of each measurement; it raises RaceError, BettongError, AssertionError.
    """

    name: str
    measurements: Sequence[Measurement]
    version: str
    guarantee: str
    once: _Once
    peer: Peer | None = None
    fault: str = ""

    @property
    def note(self) -> str:
        """Version, guarantee and fault."""
        fault = f"; failed: {self.fault}" if self.fault else ""
        return f"{self.version}; {self.guarantee}{fault}"


def entries_of(workload: PeerWorkload) -> list[Entry]:
    """All that can run it."""
    peers = [peer for peer in PEERS if workload.name in peer.programs]
    return [*_bettong(workload), *(_peer(workload, peer) for peer in peers)]


def left_out(workload: PeerWorkload) -> dict[str, str]:
    """Why, by peer, of those that have no such operator."""
    return {
        peer.name: f"{peer.lacks[workload.name]} ({peer.version})"
        for peer in PEERS
        if workload.name in peer.lacks
    }


def _bettong(workload: PeerWorkload) -> list[Entry]:
    entries = []
    for schedule in Schedule:
        suite = BettongSuite(workload, schedule)
        name = f"{_BETTONG}, {schedule}"
        once = _once(workload, suite.start, merges=False)
        entries.append(Entry(name, _measurements(name, workload), version("bettong"), suite.guarantee, once))
        if workload is MARKET_SPREAD:
            name += ", its own frames"
            guarantee = "exactly once, for who reads frames; a snapshot each second"
            own = partial(_own_frames, schedule)
            speed = [Measurement(name, _UNIT, None)]
            entries.append(Entry(name, speed, version("bettong"), guarantee, own))
    return entries


def _peer(workload: PeerWorkload, peer: Peer) -> Entry:
    start = partial(peer.start, workload)
    once: _Once = partial(_race_by_frames, start)
    if not peer.frames:
        once = _once(workload, start, merges=workload.name in peer.merges)
    return Entry(peer.name, _measurements(peer.name, workload), peer.version, peer.guarantee, once, peer)


def _once(workload: PeerWorkload, start: race.Start, *, merges: bool) -> _Once:
    return partial(_latency, start, merges=merges) if workload.at_rate else partial(_race, start)


def _measurements(name: str, workload: PeerWorkload) -> list[Measurement]:
    metrics = steady.METRICS if workload.at_rate else footprint.METRICS
    found = [Measurement(f"{name}, {metric}", unit, None) for metric, unit in metrics]
    return found if workload.at_rate else [Measurement(name, _UNIT, None), *found]


def _race(start: race.Start, load: Load, size: RunSize) -> list[Sample]:
    return race.run(start, load, partitions=size.partitions, processes=size.processes, s_max=size.s_max)


def _latency(start: race.Start, load: Load, size: RunSize, *, merges: bool) -> list[Sample]:
    return steady.run(
        start,
        load,
        size.rate,
        partitions=size.partitions,
        processes=size.processes,
        s_max=size.s_max,
        merges=merges,
    )


def _race_by_frames(start: race.Start, _: Load, size: RunSize) -> list[Sample]:
    return _race(start, market_frames(size.messages, size.partitions), size)


def _own_frames(schedule: Schedule, _: Load, size: RunSize) -> list[Sample]:
    workload = between_bells(size.messages)
    return [log_to_log.speed(workload, schedule=schedule, compiled=True, partitions=size.partitions)]
