"""Looks at this machine and this environment: the facts that `prerequisites` decides by."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping
from importlib.metadata import PackageNotFoundError, entry_points, version
from importlib.util import find_spec
from pathlib import Path

import psutil

from bettong.class_archives import KAFKA, SPARK, archive
from bettong.jars import BROKER_JARS, CONNECTOR_JARS
from bettong.java import find_java
from bettong.local.prerequisites import Installer, MachineFacts
from bettong.services import CONSOLE, SERVICES

_ENTRY_POINTS = "bettong.services"
_ANSWER_S_MAX = 10.0  # of a program that only says its version
_GB = 1e9


def inspect_machine(folder: Path, environment: Mapping[str, str]) -> MachineFacts:
    """What is here. `folder`: where an application would keep its data. Runs `redis-server --version`."""
    services = {entry.name for entry in entry_points(group=_ENTRY_POINTS)}
    missing = [f"bettong-{name}" for name in (*SERVICES, CONSOLE) if name not in services]
    if find_spec("pyspark") is None:
        missing.append("pyspark")
    return MachineFacts(
        version=_version("bettong"),
        python=sys.version_info[:2],
        java=find_java(environment),
        redis=redis_version(),
        missing_packages=tuple(missing),
        has_jars=all(any(jars.glob("*.jar")) for jars in (BROKER_JARS, CONNECTOR_JARS)),
        missing_archives=sum(not archive(name).exists() for name in (KAFKA, SPARK)),
        memory_gb=psutil.virtual_memory().total / _GB,
        disk_free_gb=shutil.disk_usage(folder).free / _GB,
        open_files_max=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        cpus=len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1,
        is_root=os.geteuid() == 0,
        has_apt=shutil.which("apt-get") is not None,
        installer=installer(),
    )


def redis_version() -> str | None:
    """Of the redis-server on PATH: "" where it does not say, None where there is none."""
    program = shutil.which("redis-server")
    if program is None:
        return None
    try:
        said = subprocess.run(
            [program, "--version"], check=False, capture_output=True, text=True, timeout=_ANSWER_S_MAX
        ).stdout
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r"\bv=(\d+(?:\.\d+)*)", said)
    return found.group(1) if found else ""


def installer() -> Installer | None:
    """What installs packages into this environment."""
    if find_spec("pip") is not None:
        return Installer.PIP
    return Installer.UV if shutil.which("uv") else None


def _version(distribution: str) -> str:
    try:
        return version(distribution)
    except PackageNotFoundError:  # sources on the path that nobody has installed
        return "0"
