"""Builds programs from source, once a machine: `python -m tests.kubernetes.building`, `... building --chart-tools`.

A set of programs has a Go module of its own, with versions in go.mod, checked against go.sum. They lie in
`~/.cache/bettong`; what is there is not built again. Cold a control plane takes 15 to 25 minutes of one core and
3 GB of Go's cache, the chart tools 4 minutes.
"""

import argparse
import hashlib
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from bettong.local.interrupts import terminable
from tests.cache import cache_folder

_HERE = Path(__file__).parent
KUBERNETES = "1.37.1"
_BUILD_S_MAX = 5400.0

_VERSION = "k8s.io/component-base/version"
_MINOR = KUBERNETES.split(".")[1]
_KUBE = f"-X {_VERSION}.gitVersion=v{KUBERNETES} -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor={_MINOR}"
_HELM3 = "helm.sh/helm/v3/pkg"


class BuildError(Exception):
    """Why there is no program."""


@dataclass(frozen=True)
class Tools:
    """Programs of one Go module. `programs`: package and linker's flags of each."""

    name: str
    module: Path
    programs: Mapping[str, tuple[str, str]]

    @property
    def folder(self) -> Path:
        """Where the programs are, or will be."""
        pinned = (self.module / "go.mod").read_bytes() + (self.module / "go.sum").read_bytes()
        pins = hashlib.sha256(pinned).hexdigest()[:12]
        return cache_folder() / f"{self.name}-{pins}"

    def are_built(self) -> bool:
        """Whether all programs are there."""
        return all((self.folder / name).exists() for name in self.programs)

    def build(self, jobs: int, seconds: float) -> None:
        """Builds what is missing, in `seconds` at most; Go's own words are printed. Raises BuildError."""
        if self.are_built():
            return
        if shutil.which("go") is None:
            raise BuildError("go is missing: install Go 1.26 or newer")
        self.folder.mkdir(parents=True, exist_ok=True)
        end = time.monotonic() + seconds
        for name, (package, flags) in self.programs.items():
            if not (self.folder / name).exists():
                print(f"building {name}", flush=True)  # noqa: T201 - a program of the command line
                self._build(name, package, flags, jobs, end - time.monotonic())

    def _build(self, name: str, package: str, flags: str, jobs: int, seconds: float) -> None:
        fresh = self.folder / f"{name}.new"
        words = ["-p", str(jobs), "-mod=readonly", "-trimpath", "-buildvcs=false", f"-ldflags=-s -w {flags}"]
        own = {"CGO_ENABLED": "0", "GOMAXPROCS": str(jobs), "GOTOOLCHAIN": "local"}
        with TemporaryDirectory(prefix="bettong-build-") as scratch:
            running = subprocess.Popen(
                ["go", "build", *words, "-o", str(fresh), package],
                cwd=self.module,
                env={**os.environ, **own, "GOTMPDIR": scratch},
                start_new_session=True,  # with the compilers that it starts
            )
            try:
                code = running.wait(max(0.0, seconds))
            except subprocess.TimeoutExpired:
                raise BuildError("the time is over; what was compiled so far is kept in Go's cache") from None
            finally:
                if running.poll() is None:
                    os.killpg(running.pid, signal.SIGKILL)
                    running.wait()
        if code:
            raise BuildError(f"go build of {name} ended with {code}, see above")
        fresh.rename(self.folder / name)


CONTROL_PLANE = Tools(
    "control-plane",
    _HERE / "tools",
    {
        "etcd": ("go.etcd.io/etcd/server/v3", ""),
        "kube-apiserver": ("k8s.io/kubernetes/cmd/kube-apiserver", _KUBE),
        "kube-controller-manager": ("k8s.io/kubernetes/cmd/kube-controller-manager", _KUBE),
        "kube-scheduler": ("k8s.io/kubernetes/cmd/kube-scheduler", _KUBE),
        "kwok": ("sigs.k8s.io/kwok/cmd/kwok", "-X sigs.k8s.io/kwok/pkg/consts.Version=v0.8.0"),
        # Without flags helm 3 takes the cluster for one of 1.20.
        "helm3": (
            "helm.sh/helm/v3/cmd/helm",
            f"-X {_HELM3}/chartutil.k8sVersionMajor=1 -X {_HELM3}/chartutil.k8sVersionMinor={_MINOR}",
        ),
    },
)
# Modules of their own: kube-score needs packages of an older Kubernetes than helm.
KUBE_SCORE = Tools(
    "kube-score",
    _HERE / "chart-tools" / "kube-score",
    {"kube-score": ("github.com/zegl/kube-score/cmd/kube-score", "")},
)
HELM_UNITTEST = Tools(
    "helm-unittest",
    _HERE / "chart-tools" / "helm-unittest",
    {"helm-unittest": ("github.com/helm-unittest/helm-unittest/cmd/helm-unittest", "")},
)
CHART_TOOLS: Mapping[str, Tools] = {each.name: each for each in (KUBE_SCORE, HELM_UNITTEST)}


def main() -> None:
    """Builds a control plane; or, within a bound, the tools that look at charts, and says what came of each."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--chart-tools", action="store_true", help="kube-score and helm-unittest instead")
    parser.add_argument("--seconds", type=float, default=_BUILD_S_MAX, help="at most, in all")
    given = parser.parse_args()
    end = time.monotonic() + given.seconds
    if not given.chart_tools:
        try:
            CONTROL_PLANE.build(given.jobs, given.seconds)
        except BuildError as error:
            raise SystemExit(f"no control plane: {error}") from error
        return
    for tools in CHART_TOOLS.values():
        print(tools.name, _came_of(tools, given.jobs, end - time.monotonic()), flush=True)  # noqa: T201 - as above


def _came_of(tools: Tools, jobs: int, seconds: float) -> str:
    if tools.are_built():
        return f"is in the cache: {tools.folder}"
    begun = time.monotonic()
    try:
        tools.build(jobs, seconds)
    except BuildError as error:
        return f"could not be built, its tests are left out: {error}"
    return f"was built in {time.monotonic() - begun:.0f} s: {tools.folder}"


if __name__ == "__main__":
    with terminable():
        main()
