"""Builds the site of docs/ into build/site: `make site`.

Its packages are in an environment of their own, .venv-site, from docs/site/requirements.lock: the engine's stays as it
is, and the site needs neither Java nor anything that runs. A page that has a broken link, or would fetch something from
another host, fails. Standard library of Python 3.11 only.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from deploy.bootstrap import Setup, inspect_machine, make_installer
from deploy.running import alone, timed
from deploy.setup_plan import SetupError, Tree, digest, uv_settings

LOCK = "docs/site/requirements.lock"
CONFIG = "docs/site/mkdocs.yml"
BUILT = "build/site"
_BUILD_S_MAX = 300.0  # ten times what it takes on two busy cores


def make_environment(setup: Setup) -> Path:
    """Makes the environment of the site, or brings it up to date; returns its interpreter. Raises SetupError."""
    tree = setup.tree
    folder = tree.root / ".venv-site"
    python, stamp = folder / "bin" / "python", folder / "stamp"
    wanted = digest((str(tree.root), sys.version, (tree.root / LOCK).read_text()))
    if stamp.exists() and stamp.read_text() == wanted and python.exists():
        return python
    with timed(f"packages of the site ({LOCK})"):
        make_installer(setup)
        settings, uv = uv_settings(os.environ), [str(tree.uv), "--quiet"]
        setup.run("site", [*uv, "venv", "--clear", "--python", sys.executable, str(folder)], settings)
        install = ["pip", "install", "--python", str(python), "--require-hashes", "--compile-bytecode"]
        setup.run("site", [*uv, *install, "-r", LOCK], settings)
    stamp.write_text(wanted)
    return python


def build(root: Path, python: Path) -> int:
    """Builds it; the exit code. What is wrong, mkdocs says on the screen."""
    # The hooks are modules of this tree. What the theme says of its successor is in docs/decisions.
    environment = {**os.environ, "PYTHONPATH": str(root), "NO_MKDOCS_2_WARNING": "1"}
    # Not --quiet: what is not logged does not count as a warning, and a strict build passes.
    command = [str(python), "-m", "mkdocs", "build", "--strict", "--config-file", CONFIG]
    try:
        return subprocess.run(
            command, cwd=root, env=environment, check=False, timeout=_BUILD_S_MAX
        ).returncode
    except subprocess.TimeoutExpired:
        print(f"site: not built after {_BUILD_S_MAX:.0f} s; something on this machine hangs", file=sys.stderr)
        return 1


def main() -> int:
    """The exit code: 0 built, 1 not."""
    tree = Tree(Path(__file__).resolve().parent.parent)
    try:
        with alone(tree.root):
            python = make_environment(Setup(tree, inspect_machine()))
    except SetupError as error:
        print(f"site: {error}", file=sys.stderr)
        return 1
    code = build(tree.root, python)
    if code == 0:
        page = tree.root / BUILT / "index.html"
        print(f"site: {page}; its search needs a server: `python -m http.server -d {BUILT}`")
    return int(code != 0)


if __name__ == "__main__":
    sys.exit(main())
