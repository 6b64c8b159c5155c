"""What a figure was measured on: machine and versions."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

PACKAGES = ("pyspark", "kafka-python", "grpcio", "protobuf", "pyarrow", "numpy", "numba", "redis")


def facts() -> dict[str, str]:
    """Processor, cores, memory, Python and package versions."""
    cpu = next(
        (line.split(":", 1)[1].strip() for line in _lines("/proc/cpuinfo") if line.startswith("model name")),
        platform.processor(),
    )
    memory = next((line.split()[1] for line in _lines("/proc/meminfo") if line.startswith("MemTotal")), "0")
    return {
        "processor": cpu,
        "cores": str(len(os.sched_getaffinity(0))),
        "memory": f"{int(memory) / 1024 / 1024:.0f} GiB",
        "load before": f"{os.getloadavg()[0]:.1f}",
        "python": platform.python_version(),
        "packages": ", ".join(f"{name} {version(name)}" for name in PACKAGES),
    }


def _lines(path: str) -> list[str]:
    file = Path(path)
    return file.read_text().splitlines() if file.exists() else []
