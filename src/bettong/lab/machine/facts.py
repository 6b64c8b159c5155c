"""The facts that results record: machine, versions, and conditions of the machine that distort measurements."""

import os
import platform
import re
import subprocess
from importlib.metadata import version
from pathlib import Path

from bettong.jars import BROKER_JARS
from bettong.lab.machine.conditions import Conditions
from bettong.lab.machine.machine_state import inspect_machine, measure_hiccups
from bettong.lab.results import BEFORE, COMMIT
from bettong.lab.versions import git
from bettong.local.usable_cpus import usable_cpus

PACKAGES = (
    *("pyspark", "confluent-kafka", "kafka-python", "grpcio", "protobuf", "pyarrow", "numpy", "numba"),
    *("redis", "hdrhistogram"),
)
_ASK_S_MAX = 20.0
_HICCUPS_S = 1.0
_VERSION = re.compile(r"\d+(\.\d+)+")
_UNKNOWN = "unknown"


def facts() -> dict[str, str]:
    """Processor, cores, memory, and versions of the tree, Python, packages, and the servers of a local suite."""
    cpu = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    memory = next((line.split()[1] for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), "0")
    return {
        "processor": cpu,
        "cores": str(usable_cpus()),
        "memory": f"{int(memory) / 1024 / 1024:.0f} GiB",
        f"load{BEFORE}": f"{os.getloadavg()[0]:.1f}",
        COMMIT: _UNKNOWN,
        **git.commit_facts(Path.cwd()),
        "python": platform.python_version(),
        "packages": ", ".join(f"{name} {version(name)}" for name in PACKAGES),
        "servers": (
            f"Kafka {_kafka()}, Redis {_version_of('redis-server', '--version')},"
            f" Java {_version_of('java', '-version')}"
        ),
    }


def run_facts() -> dict[str, str]:
    """`facts`, and the conditions that distort measurements now. Blocks for a good second."""
    return facts() | condition_facts(inspect_machine(measure_hiccups(_HICCUPS_S)))


def condition_facts(seen: Conditions) -> dict[str, str]:
    """The conditions that `bettong lab check` judges. Names of those that vary from run to run end with BEFORE."""
    switch = {True: "on", False: "off", None: _UNKNOWN}
    return {
        "kernel": platform.release(),
        "governor": ", ".join(sorted(set(seen.governors))) or _UNKNOWN,
        "turbo": switch[seen.turbo],
        "SMT": switch[seen.smt],
        "isolated processors": ",".join(map(str, seen.isolated)) or "none",
        "interrupts on isolated processors": str(seen.interrupts_on_isolated),
        "huge pages": seen.huge_pages or _UNKNOWN,
        "swappiness": _UNKNOWN if seen.swappiness is None else str(seen.swappiness),
        "clock source": seen.clock_source or _UNKNOWN,
        "quota": "none" if seen.quota is None else f"{seen.quota:g} processors",
        "open files": str(seen.open_files_max),
        f"swap used{BEFORE}": f"{seen.swapped_mb:.0f} MB",
        f"other work{BEFORE}": f"{seen.busy:.0%}",
        f"stolen time{BEFORE}": f"{seen.stolen:.1%}",
        f"hiccups{BEFORE}": (
            f"p50 {seen.hiccup_p50_us:.0f}, p99 {seen.hiccup_p99_us:.0f}, max {seen.hiccup_max_us:.0f} us"
        ),
    }


def _version_of(*call: str) -> str:
    """The first version number in a program's output; "unknown" if there is none."""
    try:
        ended = subprocess.run(call, check=False, capture_output=True, text=True, timeout=_ASK_S_MAX)
    except (OSError, subprocess.TimeoutExpired):
        return _UNKNOWN
    found = _VERSION.search(ended.stdout + ended.stderr)
    return found.group() if found else _UNKNOWN


def _kafka() -> str:
    """The version of the jars that `make setup` fetched."""
    names = [each.stem for each in BROKER_JARS.glob("kafka-server-[0-9]*.jar")]
    return names[0].removeprefix("kafka-server-") if names else _UNKNOWN


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []
