"""Faults carried out on a running suite, and mended again."""

from __future__ import annotations

import contextlib
import signal
import socket
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import TracebackType
from typing import Self
from urllib.parse import urlparse

import psutil

from bettong.chaos.clock import Clock
from bettong.chaos.disk import SmallDisk
from bettong.chaos.proxy import Proxy
from bettong.chaos.spec import Link, Target
from bettong.chaos.timetable import Fault
from bettong.chaos.victims import processes
from bettong.errors import BettongError, LocalError
from bettong.local.record import SuiteRecord

_REDIS_S_MAX = 2.0


@dataclass(slots=True)
class Injected:
    """A fault as it came to pass. Unix seconds; `missed` says why nothing was done."""

    fault: Fault
    begun_s: float
    ended_s: float
    victims: tuple[int, ...] = ()
    missed: str = ""


@dataclass(frozen=True, slots=True)
class Arena:
    """What faults are done to. `clock` and `disk` are there when the spec needs them and the machine has them."""

    record: Callable[[], SuiteRecord]
    proxies: Mapping[Link, Proxy]
    clock: Clock | None = None
    disk: SmallDisk | None = None


@dataclass(slots=True)
class Nemesis:
    """Begins faults and ends them. A context manager: leaving mends what is not mended. For one thread."""

    arena: Arena
    _stopped: dict[int, list[psutil.Process]] = field(default_factory=dict)

    def begin(self, fault: Fault) -> Injected:
        """Does it. A fault whose victim is not there (it is just being started again) is missed, and says so."""
        injected = Injected(fault, time.time(), time.time())
        acts: dict[str, Callable[[Injected], None]] = {
            "kill": self._kill,
            "pause": self._pause,
            "wipe": self._wipe,
            "cut": self._cut,
            "delay": self._delay,
            "clock": self._set_clock,
            "fill": self._fill,
        }
        try:
            acts[fault.kind](injected)
        except BettongError as error:
            injected.missed = str(error)
        injected.ended_s = time.time() + fault.for_s
        return injected

    def end(self, injected: Injected) -> None:
        """Mends what lasts; notes when."""
        fault = injected.fault
        if fault.kind == "pause":
            self._go_on(fault.number)
        elif fault.kind in ("cut", "delay"):
            self.arena.proxies[Link(fault.targets[0])].heal()
        elif fault.kind == "clock" and self.arena.clock is not None:
            self.arena.clock.set(0.0)
        elif fault.kind == "fill" and self.arena.disk is not None:
            self.arena.disk.free()
        if fault.for_s:
            injected.ended_s = time.time()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for number in list(self._stopped):
            self._go_on(number)
        for proxy in self.arena.proxies.values():
            proxy.heal()
        if self.arena.clock is not None:
            self.arena.clock.set(0.0)
        if self.arena.disk is not None:
            self.arena.disk.free()

    def _victims(self, fault: Fault) -> list[psutil.Process]:
        """One process for each target that has one. Raises LocalError when none has."""
        services = self.arena.record().services
        found = []
        for target in fault.targets:
            candidates = processes(Target(target), services)
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

    def _go_on(self, number: int) -> None:
        _signal(self._stopped.pop(number, []), signal.SIGCONT)

    def _wipe(self, _: Injected) -> None:
        place = urlparse(self.arena.record().redis)
        try:
            with socket.create_connection((place.hostname, place.port), timeout=_REDIS_S_MAX) as redis:
                redis.sendall(b"FLUSHALL\r\n")
                answer = redis.recv(64)
        except OSError as error:
            raise LocalError(f"redis does not answer: {error}") from None
        if not answer.startswith(b"+OK"):
            raise LocalError(f"redis refuses FLUSHALL: {answer.decode(errors='replace').strip()}")

    def _cut(self, injected: Injected) -> None:
        self.arena.proxies[Link(injected.fault.targets[0])].cut()

    def _delay(self, injected: Injected) -> None:
        self.arena.proxies[Link(injected.fault.targets[0])].delay(injected.fault.by / 1000)

    def _set_clock(self, injected: Injected) -> None:
        if self.arena.clock is None:
            raise LocalError("the sender was started with its own clock")
        self.arena.clock.set(injected.fault.by)

    def _fill(self, _: Injected) -> None:
        if self.arena.disk is None:
            raise LocalError("the suite is not on a file system of its own")
        self.arena.disk.fill()


def _signal(victims: list[psutil.Process], number: signal.Signals) -> None:
    """Psutil makes sure that the number is not another process's by now."""
    for victim in victims:
        with contextlib.suppress(psutil.NoSuchProcess):
            victim.send_signal(number)
