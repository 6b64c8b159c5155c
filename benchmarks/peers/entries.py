"""Who runs a workload: Bettong's rows, then each peer that has a program for it."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from importlib.metadata import version

from benchmarks import log_to_log
from benchmarks.measuring import Measurement, Sample
from benchmarks.peers import race
from benchmarks.peers.bettong.contestant import BettongSuite
from benchmarks.peers.load import Load
from benchmarks.peers.market_load import between_bells, market_frames
from benchmarks.peers.roster import PEERS, Peer
from benchmarks.peers.workloads import MARKET_SPREAD, PeerWorkload
from bettong.config.processor import Schedule

_BETTONG = "Bettong"
_UNIT = "messages/s"


@dataclass(frozen=True, slots=True)
class RunSize:
    """How much a run has, how wide it is, and how long it may take."""

    messages: int
    partitions: int
    processes: int
    s_max: float


@dataclass(slots=True)
class Entry:
    """A row: who, what it was configured to guarantee, its runs, and what ended them early.

    `once` is one run of it; it raises RaceError, BettongError, AssertionError.
    """

    measurement: Measurement
    version: str
    guarantee: str
    once: Callable[[Load, RunSize], Sample]
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
        once = partial(_race, suite.start)
        entries.append(Entry(Measurement(name, _UNIT, None), version("bettong"), suite.guarantee, once))
        if workload is MARKET_SPREAD:
            own = Measurement(f"{name}, its own frames", _UNIT, None)
            guarantee = "exactly once, for who reads frames; a snapshot each second"
            entries.append(Entry(own, version("bettong"), guarantee, partial(_own_frames, schedule)))
    return entries


def _peer(workload: PeerWorkload, peer: Peer) -> Entry:
    start = partial(peer.start, workload)
    once = partial(_race_by_frames if peer.frames else _race, start)
    return Entry(Measurement(peer.name, _UNIT, None), peer.version, peer.guarantee, once, peer)


def _race(start: race.Start, load: Load, size: RunSize) -> Sample:
    return race.run(start, load, partitions=size.partitions, processes=size.processes, s_max=size.s_max)


def _race_by_frames(start: race.Start, _: Load, size: RunSize) -> Sample:
    return _race(start, market_frames(size.messages, size.partitions), size)


def _own_frames(schedule: Schedule, _: Load, size: RunSize) -> Sample:
    workload = between_bells(size.messages)
    return log_to_log.speed(workload, schedule=schedule, compiled=True, partitions=size.partitions)
