"""What a setup has to do, and why it may not: the decisions of deploy/bootstrap.py, which acts on them.

Reads the files of the tree, and which Java there is; runs nothing, installs nothing, asks no network.
Standard library of Python 3.11 only: this runs before anything is installed.
"""

from __future__ import annotations

import base64
import hashlib
import platform
import re
import shutil
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

PYTHON_MIN, PYTHON_MAX = (3, 11), (3, 13)  # what pyproject.toml claims, and `make pythons` tests
JAVA_MIN = 17  # what Spark 4 and Kafka 4 ask for
ATTEMPTS_MAX = 3  # of a step that uses the network

PACKAGES_OF_TOOLS = {"java": "openjdk-17-jre-headless", "mvn": "maven", "git": "git"}
# pip's settings, and the names under which uv reads the same.
UV_NAMES_OF_PIP_SETTINGS = {
    "PIP_INDEX_URL": "UV_DEFAULT_INDEX",
    "PIP_EXTRA_INDEX_URL": "UV_INDEX",
    "PIP_FIND_LINKS": "UV_FIND_LINKS",
    "PIP_CERT": "SSL_CERT_FILE",
    "PIP_DEFAULT_TIMEOUT": "UV_HTTP_TIMEOUT",
}


class SetupError(Exception):
    """What stops a setup; its text is what the user reads, remedy included."""


@dataclass(frozen=True, slots=True)
class SystemServer:
    """A server that Bettong starts, where it comes from, and what it is called in a message.

    `folders`: a pattern of folders outside PATH where Debian may keep the program, one a version. `may_be_missing`:
    where it cannot be installed, only the tests that need it are left out.
    """

    program: str
    package: str
    title: str
    folders: str = ""
    may_be_missing: bool = False


REDIS = SystemServer("redis-server", "redis-server", "a Redis server")
POSTGRES = SystemServer(
    "postgres", "postgresql", "a Postgres server (for the tests)", "/usr/lib/postgresql/*/bin"
)
PROMETHEUS = SystemServer(
    "prometheus",
    "prometheus",
    "Prometheus and promtool (for the tests of alerts and dashboards)",
    may_be_missing=True,
)
# Programs that serve nobody, but come in the same way.
# The same engine without a browser's own windows, whose toolbars took half of the CPU of these tests.
CHROMIUM = SystemServer(
    "chromium-headless-shell",
    "chromium-headless-shell",
    "Chromium (for the tests of the console's page)",
)
MMDEBSTRAP = SystemServer("mmdebstrap", "mmdebstrap", "mmdebstrap (makes file systems that tests start from)")
IMAGE_TOOLS = (
    SystemServer("buildah", "buildah", "buildah (builds images)"),
    SystemServer("crun", "crun", "crun (runs containers)"),
    MMDEBSTRAP,
)
MACHINE_TOOLS = (
    MMDEBSTRAP,
    SystemServer("qemu-system-x86_64", "qemu-system-x86", "qemu (a virtual machine for the tests)"),
)


@dataclass(frozen=True, slots=True)
class Step:
    """A part of the setup that is either complete or done again.

    `inputs` is everything that its result depends on; `outputs` must exist for its stamp to count. `is_beside`: it
    needs none of the Python packages, and is done while these come.
    """

    name: str
    title: str
    inputs: tuple[str, ...]
    outputs: tuple[Path, ...]
    attempts: int = 1
    is_beside: bool = False


@dataclass(frozen=True, slots=True)
class Machine:
    """The facts about this machine that the decisions need."""

    python: tuple[int, int]
    java_banner: str | None  # what `java -version` prints; None when there is no java
    tools: frozenset[str]
    is_root: bool
    has_apt: bool


def java_major(banner: str) -> int | None:
    """The major version in the output of `java -version`: 17 of `17.0.15`, 8 of `1.8.0_402`."""
    found = re.search(r'version "(?:1\.)?(\d+)', banner)
    return int(found.group(1)) if found else None


def java_identity() -> str:
    """What distinguishes this Java from another one, without running it: where its classes are, their size and time."""
    program = shutil.which("java")
    if program is None:
        return ""
    classes = Path(program).resolve().parent.parent / "lib" / "modules"
    if not classes.exists():
        return str(classes)
    found = classes.stat()
    return f"{classes} {found.st_size} {found.st_mtime_ns}"


def faults(machine: Machine) -> list[str]:
    """One line for each prerequisite that is not met, with the command that mends it."""
    found = []
    if machine.python < PYTHON_MIN:
        found.append(
            f"Python {_dotted(machine.python)} is too old: run `make setup PYTHON=python3.11` (or newer)"
        )
    if machine.python > PYTHON_MAX:
        newest = _dotted(PYTHON_MAX)
        found.append(
            f"Python {_dotted(machine.python)} is newer than what is tested:"
            f" run `make setup PYTHON=python{newest}` (or older)"
        )
    java = java_major(machine.java_banner) if machine.java_banner else None
    if machine.java_banner and (java is None or java < JAVA_MIN):
        have = "of an unknown version" if java is None else str(java)
        remedy = _apt_command(PACKAGES_OF_TOOLS["java"], machine)
        found.append(f"Java {have} is installed but Java {JAVA_MIN} or newer is needed: run `{remedy}`")
    for tool, package in PACKAGES_OF_TOOLS.items():
        if tool not in machine.tools:
            found.append(f"{tool} is missing: run `{_apt_command(package, machine)}`")
    return found


def may_install(package: str, *, what: str, machine: Machine) -> None:
    """Returns when apt-get may be called here for `package`; otherwise raises with the command to run."""
    if not (machine.has_apt and machine.is_root):
        raise SetupError(
            f"{what} is missing: run `{_apt_command(package, machine)}`, then `make setup` again"
        )


def digest(parts: Iterable[str]) -> str:
    """One digest of an ordered list of texts; the borders between them count."""
    total = hashlib.sha256()
    for part in parts:
        total.update(hashlib.sha256(part.encode()).digest())
    return total.hexdigest()


def due(steps: Sequence[Step], stamps: Mapping[str, str], exists: Callable[[Path], bool]) -> list[Step]:
    """The steps to do, in order: those whose stamp is not current or of which an output is gone."""
    return [s for s in steps if stamps.get(s.name) != digest(s.inputs) or not all(map(exists, s.outputs))]


def backoff_s(attempt: int) -> float:
    """How long to wait after the failed attempt number `attempt` (from 1): 2 s, 8 s, ..."""
    return 2.0 * 4.0 ** (attempt - 1)


def uv_settings(environment: Mapping[str, str]) -> dict[str, str]:
    """The environment for uv: pip's settings also under uv's names, unless the user has set those."""
    translated = {
        uv: ",".join(environment[pip].split()) if uv == "UV_FIND_LINKS" else environment[pip]
        for pip, uv in UV_NAMES_OF_PIP_SETTINGS.items()
        if environment.get(pip) and uv not in environment
    }
    return {**environment, **translated, "UV_PYTHON_DOWNLOADS": "never"}


def wrong_jars(wanted: str, found: Mapping[str, str]) -> list[str]:
    """What differs between a sha256sum list and the jars that are there, a line for each jar."""
    expected = {name: total for total, name in (line.split() for line in wanted.splitlines())}
    missing = [f"{name}: missing" for name in expected.keys() - found.keys()]
    extra = [f"{name}: not in jars.sha256" for name in found.keys() - expected.keys()]
    other = [
        f"{name}: other content" for name in expected.keys() & found.keys() if expected[name] != found[name]
    ]
    return sorted(missing + extra + other)


def wrong_package(wanted: str, content: bytes) -> str | None:
    """Why a package is not the one wanted, by its hash as npm writes it (`sha512-BASE64`); None when it is."""
    algorithm, _, expected = wanted.partition("-")
    found = base64.b64encode(hashlib.new(algorithm, content).digest()).decode()
    return None if found == expected else f"its {algorithm} is {found}, expected {expected}"


def may_run(wanted: str, machine: str) -> None:
    """Returns when programs for `wanted` run on `machine` (as `uname -m` says); otherwise raises."""
    if machine != wanted:
        raise SetupError(
            f"helm for the tests comes for {wanted}, this machine is {machine}: `make demo` works without"
        )


def _apt_command(package: str, machine: Machine) -> str:
    if not machine.has_apt:
        return f"your system's installer for the equivalent of Debian's {package}"
    return f"{'' if machine.is_root else 'sudo '}apt-get install -y {package}"


def _dotted(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


@dataclass(frozen=True, slots=True)
class Tree:
    """Where things are, and what the steps are made from."""

    root: Path

    @property
    def venv(self) -> Path:
        """The environment that everything runs in."""
        return self.root / ".venv"

    @property
    def python(self) -> Path:
        """Its interpreter."""
        return self.venv / "bin" / "python"

    @property
    def share(self) -> Path:
        """Where things lie that are not Python packages: jars, stamps, logs, the installer."""
        return self.venv / "share" / "bettong"

    @property
    def uv(self) -> Path:
        """The installer, in an environment of its own: it must not install over itself."""
        return self.share / "uv" / "bin" / "uv"

    @property
    def helm(self) -> Path:
        """The helm that tests render the charts with; kubectl lies beside it."""
        return self.share / "helm" / "helm"

    @property
    def projects(self) -> list[Path]:
        """The folders with a pyproject.toml: the library, then the services."""
        return [self.root, *(path.parent for path in sorted(self.root.glob("services/*/pyproject.toml")))]

    def steps(self) -> list[Step]:
        """All steps in their order, with their inputs as they are now. Later steps contain earlier inputs."""
        return [*self.python_steps(), *self._java_steps()]

    def python_steps(self) -> list[Step]:
        """The first of them: all that the linters and mypy need."""
        here = self._here()
        installer = (*here, *self._texts("requirements-uv.lock"))
        locked = (*here, *self._texts("requirements.lock"))
        manifests = self._texts("pyproject.toml", "services/*/pyproject.toml", "hatch_build.py")
        protos = self._texts("protos/**/*.proto", "hatch_build.py")
        return [
            Step("environment", "Python environment in .venv", here, (self.python,)),
            Step("installer", "package installer", installer, (self.uv,), ATTEMPTS_MAX),
            Step("packages", "Python packages (requirements.lock)", locked, (), ATTEMPTS_MAX),
            Step(
                "protos", "protos to Python", (*locked, *protos), (self.root / "src/bettong/v1/__init__.py",)
            ),
            Step("projects", "this tree, editable", (*locked, *manifests), (self.venv / "bin" / "bettong",)),
        ]

    def _java_steps(self) -> list[Step]:
        here, jars = self._here(), self.share / "jars"
        wanted = self._texts("deploy/jars/**/pom.xml", "deploy/jars/jars.sha256")
        recorder = self._texts(
            "services/processor/bettong_processor/record*.py", "src/bettong/class_archives.py"
        )
        archives = (*here, *self._texts("requirements.lock"), *wanted, *recorder, java_identity())
        return [
            Step(
                "jars",
                "Kafka and connector jars (deploy/jars)",
                (*here, *wanted),
                (jars / "broker", jars / "connector"),
                ATTEMPTS_MAX,
                is_beside=True,
            ),
            Step("archives", "class-data archives: Java starts in half the time", archives, ()),
        ]

    def test_steps(self) -> list[Step]:
        """The steps that only tests need, after the others."""
        helm = (*self._texts("deploy/helm-package.json", "requirements-node.lock"), platform.machine())
        return [Step("helm", "helm and kubectl (for the tests)", helm, (self.helm,), ATTEMPTS_MAX)]

    def stamps(self) -> dict[str, str]:
        """The stamp of every step that was completed once."""
        return {path.name: path.read_text() for path in (self.share / "stamps").glob("*")}

    def _here(self) -> tuple[str, str]:
        return str(self.root), _dotted(sys.version_info[:2])

    def _texts(self, *patterns: str) -> tuple[str, ...]:
        paths = [path for pattern in patterns for path in sorted(self.root.glob(pattern))]
        return tuple(text for path in paths for text in (str(path.relative_to(self.root)), path.read_text()))
