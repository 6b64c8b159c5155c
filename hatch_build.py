"""Compiles the protos into the package `bettong.v1`, at every build and every editable install.

The output is git-ignored: messages (`*_pb2.py`), gRPC stubs (`*_pb2_grpc.py`) and their types (`*.pyi`).
Run as a script it does the same without a build, which is what `make setup` does when a proto changes.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import sysconfig
import tempfile
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

PACKAGE = Path("bettong") / "v1"
INIT = '"""Messages and gRPC stubs, compiled from protos/bettong/v1; do not edit."""\n'


class ProtoBuildHook(BuildHookInterface):  # type: ignore[type-arg]
    """Hatchling calls `initialize` before it collects the files of a wheel, standard or editable."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Compile; a proto that protoc refuses fails the build with protoc's own message."""
        del version, build_data
        compile_protos(Path(self.root))


def compile_protos(root: Path) -> list[Path]:
    """Compile `root/protos/bettong/v1/*.proto` into `root/src/bettong/v1`; returns what is there afterwards.

    Files that would not change are left alone, so that the tools that watch time stamps stay quiet;
    files of protos that are gone are removed. Raises SystemExit with protoc's message when a proto is wrong.
    """
    sources = sorted((root / "protos" / PACKAGE).glob("*.proto"))
    if not sources:
        raise SystemExit(f"{root / 'protos' / PACKAGE}: no .proto file found; the source tree is incomplete")
    target = root / "src" / PACKAGE
    target.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as scratch:
        _run_protoc(root / "protos", sources, Path(scratch))
        made = Path(scratch) / PACKAGE
        (made / "__init__.py").write_text(INIT)
        _mirror(made, target)
    return sorted(target.glob("*.py*"))


def _run_protoc(include: Path, sources: list[Path], out: Path) -> None:
    command = [
        sys.executable,
        "-m",
        "grpc_tools.protoc",
        f"--proto_path={include}",
        *(f"--plugin=protoc-gen-{name}={_plugin(f'protoc-gen-{name}')}" for name in ("mypy", "mypy_grpc")),
        *(f"--{kind}_out={out}" for kind in ("python", "grpc_python")),
        *(f"--{kind}_out=quiet:{out}" for kind in ("mypy", "mypy_grpc")),
        *map(str, sources),
    ]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode != 0:
        raise SystemExit(f"protoc refused the protos:\n{done.stderr.strip()}")


def _plugin(name: str) -> str:
    """Where a protoc plugin lies: beside this Python, or on the path inside an isolated build."""
    found = shutil.which(name, path=sysconfig.get_path("scripts")) or shutil.which(name)
    if found is None:
        raise SystemExit(f"{name} is missing; run `make setup`, or install mypy-protobuf")
    return found


def _mirror(made: Path, target: Path) -> None:
    wanted = {path.name: path.read_bytes() for path in made.iterdir()}
    for path in target.glob("*.py*"):
        if path.name not in wanted:
            path.unlink()
    for name, content in wanted.items():
        path = target / name
        if not path.exists() or path.read_bytes() != content:
            path.write_bytes(content)


if __name__ == "__main__":
    compile_protos(Path(__file__).resolve().parent)
