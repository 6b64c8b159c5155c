"""All processes of a suite: each once, and what is no target of faults with the service that has started it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from bettong.chaos.spec import OtherProcess
from bettong.chaos.victims import all_processes, families, processes
from bettong.lab.series import MEMORY, PSS
from bettong.lab.target.sampling import UsageSampling
from bettong.local.record import ServiceRecord
from bettong.services import PROCESSOR
from tests.looked_at import words_of
from tests.waiting import eventually

# What it says is its command line: the processor starts a daemon, which starts a worker, and that a helper.
TREE = """
import subprocess, sys, time
depth = sys.argv[1:]
if len(depth) > 1:
    subprocess.Popen([sys.executable, "-c", sys.orig_argv[2], *depth[1:]])
time.sleep(600)
"""


@pytest.fixture
def services() -> Iterator[dict[str, ServiceRecord]]:
    """A processor with a daemon that has a worker, which has a helper; and a sender."""
    kinds = {PROCESSOR.name: ["driver", "bettong_processor.daemon", "worker", "helper"], "sender": ["sender"]}
    started = {name: subprocess.Popen([sys.executable, "-c", TREE, *words]) for name, words in kinds.items()}
    every = [psutil.Process(each.pid) for each in started.values()]
    said = sorted(word for words in kinds.values() for word in words)
    eventually(
        lambda: last_words([*every[0].children(recursive=True), *every]) == said, what="each runs its program"
    )
    yield {
        name: ServiceRecord(
            pid=each.pid, started_s=psutil.Process(each.pid).create_time(), log=Path(os.devnull)
        )
        for name, each in started.items()
    }
    for each in [*every[0].children(recursive=True), *every]:
        each.kill()
    for process in started.values():
        process.wait()


def last_words(found: list[psutil.Process]) -> list[str]:
    """By which each of the tree is known."""
    return sorted(word for each in found for word in words_of(each)[3:4])


def test_a_daemon_counts_with_the_processor_and_is_no_target(services: dict[str, ServiceRecord]) -> None:
    found = {kind: last_words(each) for kind, each in all_processes(services).items() if each}
    assert found == {
        PROCESSOR.name: ["bettong_processor.daemon", "driver", "helper"],
        OtherProcess.WORKER: ["worker"],
        "sender": ["sender"],
    }
    assert last_words(processes(PROCESSOR.name, services)) == ["driver"]
    assert last_words(processes(OtherProcess.WORKER, services, families())) == ["worker"]


def test_another_instance_counts_with_its_service(services: dict[str, ServiceRecord]) -> None:
    renamed = {"sender-2": services["sender"], "console": services[PROCESSOR.name]}
    found = {kind: last_words(each) for kind, each in all_processes(renamed).items() if each}
    assert found["sender"] == ["sender"]
    assert found["console"] == ["bettong_processor.daemon", "driver", "helper", "worker"]


def test_usage_is_of_every_process(services: dict[str, ServiceRecord]) -> None:
    with UsageSampling(lambda: services, 0.0) as sampling:
        usage = sampling.usage
        found = usage.memory_mb
        # Three processes as large as that one, and five in all, once each has loaded Python.
        eventually(
            lambda: found[PROCESSOR.name] > 2 * found["sender"] > 0, what="the processor counts thrice"
        )
        eventually(lambda: usage.memory_of_all_mb > 4 * found["sender"], what="all five count")
    assert found.keys() == {PROCESSOR.name, OtherProcess.WORKER, "sender"}
    if Path("/proc/self/smaps_rollup").exists():
        assert usage.pss_mb.keys() == found.keys()
        assert 0 < usage.pss_of_all_mb < usage.memory_of_all_mb  # all five run the same Python


def test_pss_is_looked_at_first_and_last_and_not_each_second(
    services: dict[str, ServiceRecord], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bettong.lab.target.sampling._PSS_S", 3600.0)
    with UsageSampling(lambda: services, 0.0) as sampling:
        samples = f"sender: {MEMORY}"
        eventually(lambda: [each.metric for each in sampling.usage.points].count(samples) >= 3)
    names = [each.metric for each in sampling.usage.points]
    assert names.count(samples) >= 4
    assert names.count(f"sender: {PSS}") == (2 if Path("/proc/self/smaps_rollup").exists() else 0)
