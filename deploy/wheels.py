"""Builds the packages that `pip install bettong` and `bettong setup` install: `make wheels`, into dist/.

The library, each service, and the jars that `make setup` has fetched and checked. Nothing comes from a registry: what
builds them is in .venv, at the pins of requirements.lock.
"""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

from deploy.bootstrap import Setup, inspect_machine
from deploy.running import alone, timed
from deploy.setup_plan import SetupError, Tree, uv_settings


def build(tree: Tree, folder: Path) -> list[Path]:
    """The wheels, in `folder`, which is emptied. Raises SetupError with the end of a log where one cannot be built."""
    setup = Setup(tree, inspect_machine())
    shutil.rmtree(folder, ignore_errors=True)
    # Else hatchling, which finds our tools by PATH, would take those of the machine.
    environment = uv_settings(os.environ) | {"PATH": f"{tree.python.parent}{os.pathsep}{os.environ['PATH']}"}
    for project in (*tree.projects, tree.root / "deploy" / "jars"):
        with timed(f"wheel of {project.relative_to(tree.root.parent)}"):
            options = ["--wheel", "--no-build-isolation", "--offline", "--python", str(tree.python)]
            setup.run(
                "wheels",
                [str(tree.uv), "build", *options, "--out-dir", str(folder), str(project)],
                environment,
            )
    return sorted(folder.glob("*.whl"))


def main() -> None:
    """Builds them into `dist` of this tree, and says what there is."""
    tree = Tree(Path(__file__).resolve().parent.parent)
    try:
        with alone(tree.root):
            wheels = build(tree, tree.root / "dist")
    except SetupError as error:
        sys.exit(f"wheels: {error}")
    for wheel in wheels:
        print(f"{wheel.relative_to(tree.root)}  {wheel.stat().st_size / 1e6:.1f} MB")


if __name__ == "__main__":
    main()
