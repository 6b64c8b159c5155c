"""The current processes of a target's name."""

from __future__ import annotations

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from operator import itemgetter

import psutil

from bettong.chaos.spec import TARGETS, OtherProcess
from bettong.local.record import ServiceRecord
from bettong.local.services import SECOND
from bettong.services import PROCESSOR

# How Spark's Python processes are recognized: the module that the processor has them run.
_DAEMON = "bettong_processor.daemon"

# The suffix of an instance's name where a service has several instances.
_INSTANCE = re.compile(r"-\d+$")

# The pids of the children of each process, by its own.
Families = Mapping[int, Sequence[int]]


def families() -> Families:
    """Of all live processes of the machine: takes some milliseconds of CPU, most of the time of `processes`."""
    found: defaultdict[int, list[int]] = defaultdict(list)
    for each in psutil.process_iter(["ppid", "status"]):
        if each.info["status"] != psutil.STATUS_ZOMBIE:
            found[each.info["ppid"]].append(each.pid)
    return found


def processes(
    target: str, services: Mapping[str, ServiceRecord], within: Families | None = None
) -> list[psutil.Process]:
    """The running processes of a target, by pid; none while it is being restarted.

    `within`: the result of `families`, for callers that ask for many targets.
    """
    if target in (OtherProcess.JVM, OtherProcess.EXECUTOR, OtherProcess.WORKER):
        within, driver = families() if within is None else within, _leader(services)
        machines = _java(driver, within) if driver is not None else []
        executors = [executor for each in machines for executor in _java(each, within)]
        parents = [driver, *machines, *executors] if driver is not None else []
        workers = [worker for each in parents for worker in _workers(each, within)]
        found = {
            OtherProcess.JVM.value: machines,
            OtherProcess.EXECUTOR.value: executors,
            OtherProcess.WORKER.value: workers,
        }[target]
    elif target == PROCESSOR.name:
        own = _leader(services)
        found = [own] if own is not None else []
    else:
        instances = [name for name in services if name == target or name.startswith(f"{target}-")]
        found = [own for name in instances if (own := _running(services[name])) is not None]
    return sorted(found, key=lambda each: each.pid)


def all_processes(
    services: Mapping[str, ServiceRecord], within: Families | None = None
) -> dict[str, list[psutil.Process]]:
    """Every running process of the suite once, by target.

    Other processes count with the service that has started them, such as the daemons that fork Python's workers.
    """
    within = families() if within is None else within
    found = {target: processes(target, services, within) for target in TARGETS}
    known = {each.pid for every in found.values() for each in every}
    for name, record in services.items():
        if (own := _running(record)) is not None:
            others = [each for each in (own, *_descendants(own, within)) if each.pid not in known]
            known.update(each.pid for each in others)
            found.setdefault(_INSTANCE.sub("", name), []).extend(others)
    return found


def _leader(services: Mapping[str, ServiceRecord]) -> psutil.Process | None:
    """The active processor: of two the older one, because one that restarts stands by."""
    living = [
        (record.started_s, driver)
        for name in (PROCESSOR.name, SECOND)
        if (record := services.get(name)) is not None and (driver := _running(record)) is not None
    ]
    return min(living, key=itemgetter(0))[1] if living else None


def _running(record: ServiceRecord | None) -> psutil.Process | None:
    if record is None or not record.runs():
        return None
    try:
        return psutil.Process(record.pid)
    except psutil.NoSuchProcess:
        return None


def _java(parent: psutil.Process, within: Families) -> list[psutil.Process]:
    return [each for each in _children(parent, within) if _name(each) == "java"]


def _workers(parent: psutil.Process, within: Families) -> list[psutil.Process]:
    """The Python workers: the processor, and Spark's Java, start daemons, which fork a worker for each current task."""
    daemons = [each for each in _children(parent, within) if _DAEMON in _command(each)]
    return [worker for daemon in daemons for worker in _children(daemon, within)]


def _descendants(parent: psutil.Process, within: Families) -> Iterator[psutil.Process]:
    for child in _children(parent, within):
        yield child
        yield from _descendants(child, within)


def _children(parent: psutil.Process, within: Families) -> list[psutil.Process]:
    found = []
    for number in within.get(parent.pid, ()):
        with suppress(psutil.NoSuchProcess):
            found.append(psutil.Process(number))
    return found


def _name(process: psutil.Process) -> str:
    try:
        return process.name()
    except psutil.NoSuchProcess:
        return ""


def _command(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:
        return []
