"""What a suite costs that has nothing to do, and how long one takes from the command to its first result."""

import sys
import tempfile
import time
from pathlib import Path

import psutil

from benchmarks.measuring import Sample
from benchmarks.workload import APPLICATION
from bettong.client.sender import Sender
from bettong.config.processor import Schedule
from bettong.lab.target.folding import S_MAX
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.options import SuiteOptions
from bettong.local.processes import Command, Process
from bettong.local.suite import Suite

WORD_COUNT = Path(__file__).parents[1] / "examples" / "word_count.py"

_SETTLE_S = 10.0
_IDLE_S = 20.0
_POLL_S = 0.02
_STOP_S_MAX = 60.0


def idle(*, schedule: Schedule, partitions: int) -> list[Sample]:
    """CPU of all Python processes, and of all Java ones, in percent of a core."""
    options = SuiteOptions(application=str(APPLICATION), partitions=partitions, schedule=schedule)
    with Suite(options) as suite:
        time.sleep(_SETTLE_S)
        services = [psutil.Process(each.pid) for each in suite.record.services.values()]
        before, begun = [_spent(services, java=java) for java in (False, True)], time.perf_counter()
        time.sleep(_IDLE_S)
        seconds = time.perf_counter() - begun
        return [
            Sample(100 * (_spent(services, java=java) - spent) / seconds)
            for java, spent in zip((False, True), before, strict=True)
        ]


def first_result(*, schedule: Schedule) -> Sample:
    """Seconds from `bettong run` until a result lies in a file, of a line that was sent as soon as one may send."""
    sender = f"{LOOPBACK}:{free_ports(1)[0]}"
    with tempfile.TemporaryDirectory(prefix="bettong-benchmark-") as folder:
        results = Path(folder) / "results"
        options = ["--schedule", str(schedule), "--sender", sender, "--results", str(results)]
        arguments = (sys.executable, "-m", "bettong", "run", str(WORD_COUNT), *options)
        command = Command("bettong run", arguments, Path(folder) / "run.log", stop_s_max=_STOP_S_MAX)
        begun = time.perf_counter()
        running = Process(command)
        try:
            with Sender(sender, "lines", reconnect_s=S_MAX) as client:
                client.send_rows([b"first"])
                while not any(path.stat().st_size for path in results.glob("*/*.jsonl")):
                    assert time.perf_counter() - begun < S_MAX, (
                        f"no result after {S_MAX} s: {running.describe_end()}"
                    )
                    time.sleep(_POLL_S)
            seconds = time.perf_counter() - begun
        finally:
            running.stop()
    return Sample(seconds)


def _spent(services: list[psutil.Process], *, java: bool) -> float:
    """CPU seconds of the services and all below them, that are Java or that are Python."""
    every = [each for service in services for each in (service, *service.children(recursive=True))]
    return sum(
        sum(each.cpu_times()[:2]) for each in every if each.name().startswith("java" if java else "python")
    )
