"""Builds the programs of a control plane, once a machine: `python -m tests.kubernetes.building`.

The versions are those of tools/go.mod, checked against tools/go.sum. They lie in `~/.cache/bettong`.
Cold it takes 15 to 25 minutes of one core and 3 GB of Go's cache; what is there is not built again.
"""

import hashlib
import os
import shutil
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path

TOOLS = Path(__file__).parent / "tools"
KUBERNETES = "1.37.1"
_BUILD_S_MAX = 5400.0

_VERSION = "k8s.io/component-base/version"
_MINOR = KUBERNETES.split(".")[1]
_KUBE = f"-X {_VERSION}.gitVersion=v{KUBERNETES} -X {_VERSION}.gitMajor=1 -X {_VERSION}.gitMinor={_MINOR}"
_HELM3 = "helm.sh/helm/v3/pkg"
# Package and linker's flags of each program; without flags helm 3 takes the cluster for one of 1.20.
PROGRAMS: Mapping[str, tuple[str, str]] = {
    "etcd": ("go.etcd.io/etcd/server/v3", ""),
    "kube-apiserver": ("k8s.io/kubernetes/cmd/kube-apiserver", _KUBE),
    "kube-controller-manager": ("k8s.io/kubernetes/cmd/kube-controller-manager", _KUBE),
    "kube-scheduler": ("k8s.io/kubernetes/cmd/kube-scheduler", _KUBE),
    "kwok": ("sigs.k8s.io/kwok/cmd/kwok", "-X sigs.k8s.io/kwok/pkg/consts.Version=v0.8.0"),
    "helm3": (
        "helm.sh/helm/v3/cmd/helm",
        f"-X {_HELM3}/chartutil.k8sVersionMajor=1 -X {_HELM3}/chartutil.k8sVersionMinor={_MINOR}",
    ),
}


def programs_folder() -> Path:
    """Where the programs are, or will be."""
    pins = hashlib.sha256((TOOLS / "go.mod").read_bytes() + (TOOLS / "go.sum").read_bytes()).hexdigest()[:12]
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    return cache / "bettong" / f"control-plane-{pins}"


def are_built() -> bool:
    """Whether all programs are there."""
    return all((programs_folder() / name).exists() for name in PROGRAMS)


def build(folder: Path, jobs: int) -> None:
    """Builds what is missing. Raises CalledProcessError with Go's own words before it."""
    if are_built():
        return
    if shutil.which("go") is None:
        raise SystemExit("go is missing: a control plane is built from source; install Go 1.26 or newer")
    folder.mkdir(parents=True, exist_ok=True)
    environment = {**os.environ, "CGO_ENABLED": "0", "GOMAXPROCS": str(jobs), "GOTOOLCHAIN": "local"}
    for name, (package, flags) in PROGRAMS.items():
        if (folder / name).exists():
            continue
        print(f"building {name}", flush=True)  # noqa: T201 - a program of the command line
        fresh = folder / f"{name}.new"
        words = ["-p", str(jobs), "-mod=readonly", "-trimpath", "-buildvcs=false", f"-ldflags=-s -w {flags}"]
        subprocess.run(
            ["go", "build", *words, "-o", str(fresh), package],
            cwd=TOOLS,
            env=environment,
            check=True,
            timeout=_BUILD_S_MAX,
        )
        fresh.rename(folder / name)


if __name__ == "__main__":
    build(programs_folder(), int(sys.argv[1]) if len(sys.argv) > 1 else os.cpu_count() or 1)
