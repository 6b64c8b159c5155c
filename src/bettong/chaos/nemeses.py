"""Carries out faults on a running suite, and ends them."""

from __future__ import annotations

import contextlib
import itertools
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from types import TracebackType
from typing import Self

import psutil

from bettong.chaos.clock import MovableClock
from bettong.chaos.crowds import StalledSubscribers, StreamCrowd, row_of
from bettong.chaos.disk import SmallDisk
from bettong.chaos.proxy import Proxy
from bettong.chaos.spec import Link
from bettong.chaos.timetable import PlannedFault
from bettong.chaos.victims import processes
from bettong.edges.redis_store import RedisFaults, RedisStore
from bettong.errors import BettongError, LocalError, StoreError
from bettong.local.record import SuiteRecord
from bettong.services import SENDER


@dataclass(slots=True)
class Injected:
    """A fault as it was carried out. Unix seconds; `missed`: why it was not.

    `streams`: of a crowd, those that are done.
    """

    fault: PlannedFault
    begun_s: float
    ended_s: float
    victims: tuple[int, ...] = ()
    missed: str = ""
    streams: int = 0


@dataclass(frozen=True, slots=True)
class Arena:
    """The targets of faults. `clocks` and `disk` exist when the spec needs them and the machine has them.

    `proxies`: one before each server of a link. `clocks`: of the senders, by name. `source` and `sinks`: where badly
    behaved clients connect. `report` gets lines about a crowd's progress, from its threads.
    """

    record: Callable[[], SuiteRecord]
    proxies: Mapping[Link, Sequence[Proxy]]
    source: str = ""
    sinks: tuple[str, ...] = ()
    clocks: Mapping[str, MovableClock] = field(default_factory=dict)
    disk: SmallDisk | None = None
    report: Callable[[str], None] = lambda _: None


@dataclass(slots=True)
class Nemesis:
    """Begins faults and ends them. A context manager: leaving it ends all faults. For one thread."""

    arena: Arena
    _stopped: dict[int, list[psutil.Process]] = field(default_factory=dict)
    _crowds: dict[int, StalledSubscribers | StreamCrowd] = field(default_factory=dict)
    # Faults that starve Redis now; whether it may still be starved by an ended one.
    _starves: int = 0
    _starved: bool = False

    def begin(self, fault: PlannedFault) -> Injected:
        """Carries it out. A fault without a victim (it is just being restarted) is missed, with the reason."""
        injected = Injected(fault, time.time(), time.time())
        acts: dict[str, Callable[[Injected], None]] = {
            "kill": self._kill,
            "pause": self._pause,
            "wipe": self._wipe,
            "starve": self._starve,
            "cut": self._cut,
            "delay": self._delay,
            "clock": self._set_clock,
            "fill": self._fill,
            "stall": self._stall,
            "crowd": self._crowd,
        }
        try:
            acts[fault.kind](injected)
        except BettongError as error:
            injected.missed = str(error)
        injected.ended_s = time.time() + fault.for_s
        return injected

    def is_over(self, injected: Injected) -> bool:
        """Whether it is over before its time: a crowd whose streams are all done."""
        crowd = self._crowds.get(injected.fault.number)
        return crowd is not None and crowd.is_over

    def end(self, injected: Injected) -> None:
        """Ends a fault that lasts; notes when."""
        fault = injected.fault
        match fault.kind:
            case "starve":
                self._starves -= 1
            case "pause":
                self._resume(fault.number)
            case "cut" | "delay":
                for proxy in self._proxies(fault):
                    proxy.heal()
            case "stall":
                self._close_crowd(fault.number)
            case "crowd":
                crowd = self._close_crowd(fault.number)
                if isinstance(crowd, StreamCrowd):
                    injected.streams = crowd.done
                    injected.missed = "" if crowd.done else "none of its streams was accepted"
            case "clock":
                self._clock(fault).set(0.0)
            case "fill" if self.arena.disk is not None:
                self.arena.disk.free()
        if not self._starves:
            self._feed()
        if fault.for_s:
            injected.ended_s = time.time()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in list(self._stopped):
            self._resume(number)
        for number in list(self._crowds):
            self._close_crowd(number)
        self._feed()
        for proxy in itertools.chain(*self.arena.proxies.values()):
            proxy.heal()
        for clock in self.arena.clocks.values():
            clock.set(0.0)
        if self.arena.disk is not None:
            self.arena.disk.free()

    def _victims(self, fault: PlannedFault) -> list[psutil.Process]:
        """One process for each target that has one. Raises LocalError when none has."""
        services = self.arena.record().services
        found = []
        for target in fault.targets:
            candidates = processes(target, services)
            if candidates:
                found.append(candidates[int(fault.pick * len(candidates))])
        if not found:
            raise LocalError(f"no {' or '.join(fault.targets)} runs just now")
        return found

    def _kill(self, injected: Injected) -> None:
        victims = self._victims(injected.fault)
        injected.victims = tuple(victim.pid for victim in victims)
        injected.begun_s = time.time()
        _signal(victims, signal.SIGKILL)

    def _pause(self, injected: Injected) -> None:
        victims = self._victims(injected.fault)
        injected.victims = tuple(victim.pid for victim in victims)
        self._stopped[injected.fault.number] = victims
        _signal(victims, signal.SIGSTOP)

    def _resume(self, number: int) -> None:
        _signal(self._stopped.pop(number, []), signal.SIGCONT)

    def _wipe(self, _: Injected) -> None:
        with self._redis() as redis:
            redis.wipe()

    def _starve(self, _: Injected) -> None:
        with self._redis() as redis:
            redis.starve()
        self._starved = True
        self._starves += 1

    def _feed(self) -> None:
        """Ends the starving of Redis; if it does not answer, at the end of another fault, or of the run."""
        if self._starved:
            with contextlib.suppress(StoreError), self._redis() as redis:
                redis.feed()
                self._starved = False

    @contextlib.contextmanager
    def _redis(self) -> Iterator[RedisFaults]:
        record = self.arena.record()
        with RedisStore(record.redis_connection, record.name) as store:
            yield RedisFaults(store)

    def _cut(self, injected: Injected) -> None:
        for proxy in self._proxies(injected.fault):
            proxy.cut()

    def _delay(self, injected: Injected) -> None:
        for proxy in self._proxies(injected.fault):
            proxy.delay(injected.fault.by / 1000)

    def _proxies(self, fault: PlannedFault) -> Sequence[Proxy]:
        return self.arena.proxies[Link(fault.targets[0])]

    def _set_clock(self, injected: Injected) -> None:
        self._clock(injected.fault).set(injected.fault.by)

    def _clock(self, fault: PlannedFault) -> MovableClock:
        """The clock of the sender that the fault names, or of the only one."""
        name = fault.targets[0] if fault.targets else SENDER.name
        if name not in self.arena.clocks:
            raise LocalError(f"{name} was started without a movable clock")
        return self.arena.clocks[name]

    def _fill(self, _: Injected) -> None:
        if self.arena.disk is None:
            raise LocalError("the suite is not on a file system of its own")
        self.arena.disk.fill()

    def _stall(self, injected: Injected) -> None:
        if not self.arena.sinks:
            raise LocalError("the application has no sink to subscribe to")
        address = self.arena.proxies[Link.SUBSCRIBE][0].address
        fault = injected.fault
        self._crowds[fault.number] = StalledSubscribers(address, self.arena.sinks, int(fault.by))

    def _crowd(self, injected: Injected) -> None:
        if not self.arena.source:
            raise LocalError("the application has no source to feed")
        addresses = [proxy.address for proxy in self.arena.proxies[Link.INGEST]]
        fault = injected.fault
        self._crowds[fault.number] = StreamCrowd(
            addresses,
            self.arena.source,
            int(fault.by),
            row_of=partial(row_of, fault),
            report=self.arena.report,
        )

    def _close_crowd(self, number: int) -> StalledSubscribers | StreamCrowd | None:
        crowd = self._crowds.pop(number, None)
        if crowd is not None:
            crowd.close()
        return crowd


def _signal(victims: list[psutil.Process], number: signal.Signals) -> None:
    """Sends a signal. Psutil makes sure that the pid is not another process's by now."""
    for victim in victims:
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.send_signal(number)
