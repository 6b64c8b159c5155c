"""Collects the facts about this machine and environment from which `prerequisites` decides."""

from __future__ import annotations

import os
import re
import resource
import shutil
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import replace
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path

import psutil

from bettong import class_archives
from bettong.errors import LocalError
from bettong.jars import BROKER_JARS, CONNECTOR_JARS
from bettong.java import InstalledJava, find_java, wrong_home
from bettong.local.addresses import free_ports
from bettong.local.memory_limit import memory_limit_bytes
from bettong.local.prerequisites import Installer, MachineFacts
from bettong.local.usable_cpus import usable_cpus
from bettong.services import CONSOLE, SERVICES

_JARS = "bettong-jars"
_ANSWER_S_MAX = 10.0  # for a program that only prints its version
_GB = 1e9


def inspect_machine(folder: Path, environment: Mapping[str, str]) -> MachineFacts:
    """The facts. `folder`: where an application would keep its data. Runs `redis-server --version`."""
    limit = memory_limit_bytes()
    return MachineFacts(
        version=_version("bettong"),
        python=sys.version_info[:2],
        java=known_java(environment),
        java_home=wrong_home(environment),
        redis=redis_version(),
        missing_packages=missing_packages(),
        has_jars=all(any(jars.glob("*.jar")) for jars in (BROKER_JARS, CONNECTOR_JARS)),
        missing_archives=class_archives.missing(),
        memory_gb=psutil.virtual_memory().total / _GB,
        memory_limit_gb=None if limit is None else limit / _GB,
        disk_free_gb=shutil.disk_usage(folder).free / _GB,
        open_files_max=resource.getrlimit(resource.RLIMIT_NOFILE)[0],
        has_ports=_has_ports(),
        cpus=usable_cpus(),
        is_root=os.geteuid() == 0,
        has_apt=shutil.which("apt-get") is not None,
        installer=installer(),
    )


def missing_packages() -> tuple[str, ...]:
    """The packages of the extra `local` that are not installed, or have another version than `bettong`."""
    expected, missing = _version("bettong"), []
    for name in (*(f"bettong-{each}" for each in (*SERVICES, CONSOLE)), _JARS):
        found = _version(name)
        if found and found != expected:
            missing.append(f"{name} {expected} ({found} is here)")
        elif not found and name != _JARS:  # jars may have been installed in another way
            missing.append(name)
    if find_spec("pyspark") is None:
        missing.append("pyspark")
    return tuple(missing)


def known_java(environment: Mapping[str, str]) -> InstalledJava | None:
    """The Java that is used here; runs `java -version` if its version is in no file. None when no Java runs."""
    java = find_java(environment)
    if java is None or java.version:
        return java
    output = _output_of([str(java.program), "-version"])
    if output is None:
        return None  # on macOS `java` may be a stub that only says where to download one
    found = re.search(r'version "([^"]+)"', output)
    return replace(java, version=found.group(1)) if found else java


def redis_version() -> str | None:
    """The version of the redis-server on PATH; "" if it does not print one, None if there is no such program."""
    program = shutil.which("redis-server")
    if program is None:
        return None
    found = re.search(r"\bv=(\d+(?:\.\d+)*)", _output_of([program, "--version"]) or "")
    return found.group(1) if found else ""


def installer() -> Installer | None:
    """The program that installs packages into this environment; None if there is none."""
    if find_spec("pip") is not None:
        return Installer.PIP
    return Installer.UV if shutil.which("uv") else None


def _output_of(command: list[str]) -> str | None:
    """The output of a program; None when it fails or cannot be started."""
    try:
        done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=_ANSWER_S_MAX)
    except (OSError, subprocess.TimeoutExpired):
        return None
    return None if done.returncode else done.stdout + done.stderr


def _has_ports() -> bool:
    try:
        free_ports(1)
    except (LocalError, OSError):
        return False
    return True


def _version(distribution: str) -> str:
    """The version of a distribution; "" when it is not installed."""
    try:
        return version(distribution)
    except PackageNotFoundError:
        return ""
