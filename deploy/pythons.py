"""Tests the library's pure part on each CPython that pyproject.toml claims: `make pythons`.

How applications are described, schemas, frames, snapshots, states, folds, and users' compiled functions: what depends
on Python itself most. The version of .venv runs all tests anyway. Each other claimed version that this machine has gets
an environment in .venv-pythons, with the packages of requirements.lock that these tests need; the versions that it
lacks are named.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from packaging.specifiers import SpecifierSet

from deploy.bootstrap import Setup, inspect_machine
from deploy.running import alone, timed
from deploy.setup_plan import SetupError, Tree, uv_settings

MINOR_MAX = 30  # more than any version of Python 3 so far
TOOLS = ("hypothesis", "pytest", "pytest-timeout")
# Not tests/conftest.py, which imports packages that these tests do not need. The profile `ci` has no deadlines. One
# process a version, and versions beside each other: each process imports the library, and compiles what files share.
PYTEST_OPTIONS = (
    "-q",
    *("-p", "no:cacheprovider"),
    *("-p", "tests.garbage_search"),
    *("--confcutdir", "tests/unit"),
    *("--hypothesis-profile", "ci"),
)
# Of tests/unit, by what stands behind `test_`: what needs neither a service nor a server, some minutes a version.
# What windows, joins and timers mean is no matter of Python's version.
PURE_TESTS = (
    "aggregates",
    "any_error",
    "application",
    "application_functions",
    "array_states",
    "arrow_message",
    "branches",
    "callables",
    "chain",
    "code_facts",
    "columns",
    "compile_errors",
    "composite_keys",
    "decoders",
    "delete_when",
    "event_time",
    "folds",
    "frame",
    "jsonable",
    "kernel",
    "kernel_cache",
    "kernel_forms",
    "kernel_texts",
    "key_table",
    "lazy_heap",
    "lifetimes",
    "messages_made",
    "nested_state_checks",
    "nested_state_types",
    "nested_states",
    "numba_types",
    "operators",
    "origins",
    "partition",
    "plan",
    "record_classes",
    "recovery",
    "routing",
    "schema",
    "sent_table",
    "signatures",
    "sketches",
    "snapshot",
    "state_codec",
    "state_pickles",
    "state_schemas",
    "stored_arrays",
    "testing_run",
    "text",
    "timer_checks",
    "topics",
    "values_of_their_own",
    "vectorized_checks",
    "watermarks",
)
TESTS = [f"tests/unit/test_{name}.py" for name in PURE_TESTS]
# As long as all others together, and not about Python.
SLOW = (
    "tests/unit/test_state_codec.py::test_whatever_states_hold_comes_back_equal_and_of_the_same_types",
    "tests/unit/test_partition.py::test_streams_that_end_do_not_stay_in_snapshots_and_their_late_records_are_duplicates",
)


def claimed_versions(project: Path) -> list[str]:
    """The versions that the pyproject.toml of a folder claims: `3.11`, `3.12` ..."""
    claim = SpecifierSet(_manifest(project)["requires-python"])
    return [f"3.{minor}" for minor in range(MINOR_MAX) if f"3.{minor}.0" in claim]


def find_interpreter(version: str, environment: Mapping[str, str]) -> Path | None:
    """A CPython of a version that runs: on the PATH, else one that pyenv keeps."""
    pyenv = Path(environment.get("PYENV_ROOT") or Path.home() / ".pyenv") / "versions"
    on_path = shutil.which(f"python{version}", path=environment.get("PATH"))
    found = [Path(on_path)] if on_path else []
    found += sorted(pyenv.glob(f"{version}.*/bin/python{version}"))
    question = "import sys; print(sys.implementation.name, '%d.%d' % sys.version_info[:2])"
    for each in found:  # pyenv puts programs on the PATH that do not run
        answer = subprocess.run([str(each), "-c", question], check=False, capture_output=True, text=True)
        if answer.stdout.split() == ["cpython", version]:
            return each
    return None


def make_environment(setup: Setup, version: str, interpreter: Path) -> Path:
    """Makes the environment of a version, or brings it up to date; returns its interpreter. Raises SetupError."""
    tree = setup.tree
    folder = tree.root / ".venv-pythons" / version
    python, uv = folder / "bin" / "python", [str(tree.uv), "--quiet"]
    settings, log = uv_settings(os.environ), f"python-{version}"
    if not python.exists():
        setup.run(log, [*uv, "venv", "--clear", "--python", str(interpreter), str(folder)], settings)
    packages = [*_manifest(tree.root)["dependencies"], *TOOLS]
    install = ["pip", "install", "--python", str(python), "--constraints", "requirements.lock"]
    setup.run(log, [*uv, *install, *packages], settings)
    (library,) = folder.glob("lib/python*/site-packages")
    (library / "bettong-tree.pth").write_text(f"{tree.root / 'src'}\n")
    return python


def run_tests(root: Path, python: Path, options: Sequence[str]) -> subprocess.CompletedProcess[str]:
    """What the tests of a version say, and their exit code."""
    deselected = [f"--deselect={each}" for each in SLOW]
    command = [str(python), "-m", "pytest", *PYTEST_OPTIONS, *deselected, *TESTS, *options]
    return subprocess.run(
        command, cwd=root, check=False, text=True, stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )


def main(options: Sequence[str]) -> int:
    """The exit code: 1 when a version failed or has no environment. `options`: further ones for pytest, `-k word`."""
    tree = Tree(Path(__file__).resolve().parent.parent)
    own, failed = f"{sys.version_info[0]}.{sys.version_info[1]}", False
    pythons, missing = dict[str, Path](), list[str]()
    for version in claimed_versions(tree.root):
        if version == own:
            continue
        interpreter = find_interpreter(version, os.environ)
        if interpreter is None:
            missing.append(version)
            continue
        try:
            with alone(tree.root), timed(f"environment of Python {version}"):
                pythons[version] = make_environment(Setup(tree, inspect_machine()), version, interpreter)
        except SetupError as error:
            print(f"pythons: {error}", file=sys.stderr)
            return 1
    with ThreadPoolExecutor(max(1, len(pythons))) as threads:
        runs = threads.map(lambda python: run_tests(tree.root, python, options), pythons.values())
        for version, done in zip(pythons, runs, strict=True):
            print(f"pythons: {version}\n{done.stdout}", flush=True)
            failed |= done.returncode != 0
    print(
        f"pythons: tested on {', '.join(pythons) or 'none'}; not on this machine: {', '.join(missing) or 'none'};"
        f" on {own} `make test` runs all tests"
    )
    return int(failed)


def _manifest(project: Path) -> dict[str, Any]:
    manifest: dict[str, dict[str, Any]] = tomllib.loads((project / "pyproject.toml").read_text())
    return manifest["project"]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
