"""Tests users' compiled functions on each CPython that pyproject.toml claims: `make pythons`.

What Numba is taught holds for every version that Numba knows, and is claimed where it was tried. Each version that
this machine has gets an environment in .venv-pythons, with the packages of requirements.lock that these tests need;
the others are told. The version of .venv runs all tests anyway, so it is not among them.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from deploy.bootstrap import Setup, alone, look, told
from deploy.setup_plan import Tree, uv_settings

# More than any version of Python 3 so far.
MINOR_MAX = 30
TOOLS = ("hypothesis", "pytest", "pytest-timeout")
# Without what is set for all tests: it needs packages that these do not. The profile has no deadlines.
ALONE = ("--confcutdir", "tests/unit", "--hypothesis-profile", "ci")
TESTS = (
    "tests/unit/test_code_facts.py",
    "tests/unit/test_compile_errors.py",
    "tests/unit/test_kernel.py",
    "tests/unit/test_kernel_cache.py",
    "tests/unit/test_kernel_forms.py",
    "tests/unit/test_kernel_texts.py",
    "tests/unit/test_numba_types.py",
)


def claimed(root: Path) -> list[str]:
    """The versions that the library claims: `3.11`, `3.12` ..."""
    said = SpecifierSet(_project(root)["requires-python"])
    return [f"3.{minor}" for minor in range(MINOR_MAX) if f"3.{minor}.0" in said]


def interpreter(version: str, environment: Mapping[str, str]) -> Path | None:
    """A CPython of a version that runs: on the PATH, else one that pyenv keeps."""
    pyenv = Path(environment.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    on_path = shutil.which(f"python{version}", path=environment.get("PATH"))
    found = [Path(on_path)] if on_path else []
    found += sorted(pyenv.glob(f"{version}.*/bin/python{version}"))
    ask = "import sys; print(sys.implementation.name, '%d.%d' % sys.version_info[:2])"
    for each in found:  # pyenv puts programs on the PATH that do not run
        told = subprocess.run([str(each), "-c", ask], check=False, capture_output=True, text=True)
        if told.stdout.split() == ["cpython", version]:
            return each
    return None


def made(setup: Setup, version: str, base: Path) -> Path:
    """The interpreter of an environment for these tests. Raises SetupError."""
    tree = setup.tree
    home = tree.root / ".venv-pythons" / version
    python, uv = home / "bin" / "python", [str(tree.uv), "--quiet"]
    settings = uv_settings(os.environ)
    if not python.exists():
        setup.run(f"python-{version}", [*uv, "venv", "--clear", "--python", str(base), str(home)], settings)
    packages = [*_project(tree.root)["dependencies"], *TOOLS]
    installed = ["pip", "install", "--python", str(python), "--constraints", "requirements.lock", *packages]
    setup.run(f"python-{version}", [*uv, *installed], settings)
    (library,) = home.glob("lib/python*/site-packages")
    (library / "bettong-tree.pth").write_text(f"{tree.root / 'src'}\n")
    return python


def main(options: Sequence[str]) -> int:
    """Returns how many versions failed."""
    tree = Tree(Path(__file__).resolve().parent.parent)
    own, failed, ran = f"{sys.version_info[0]}.{sys.version_info[1]}", 0, []
    for version in claimed(tree.root):
        base = interpreter(version, os.environ) if version != own else None
        if base is None:
            continue
        with alone(tree.root), told(f"environment of Python {version}"):
            python = made(Setup(tree, look()), version, base)
        command = [str(python), "-m", "pytest", "-q", *ALONE, *(options or TESTS)]
        failed += subprocess.run(command, cwd=tree.root, check=False).returncode != 0
        ran.append(version)
    left_out = [each for each in claimed(tree.root) if each not in {own, *ran}]
    print(f"Python {own} runs all tests; tested here: {', '.join(ran) or 'none'}; {_left_out(left_out)}")
    return failed


def _left_out(versions: Sequence[str]) -> str:
    return f"not on this machine: {', '.join(versions)}" if versions else "that is all that is claimed"


def _project(root: Path) -> dict[str, Any]:
    manifest: dict[str, dict[str, Any]] = tomllib.loads((root / "pyproject.toml").read_text())
    return manifest["project"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
