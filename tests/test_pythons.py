"""Which versions of Python are claimed, and which of them a machine has."""

from __future__ import annotations

import sys
from pathlib import Path

from deploy.pythons import SLOW, TESTS, claimed_versions, find_interpreter
from deploy.setup_plan import PYTHON_MAX, PYTHON_MIN

ROOT = Path(__file__).resolve().parent.parent
OWN = f"{sys.version_info[0]}.{sys.version_info[1]}"


def test_setup_takes_the_versions_that_are_claimed() -> None:
    versions = [tuple(map(int, each.split("."))) for each in claimed_versions(ROOT)]
    assert (versions[0], versions[-1]) == (PYTHON_MIN, PYTHON_MAX)


def test_tests_of_other_versions_are_there() -> None:
    assert [each for each in TESTS if not (ROOT / each).is_file()] == []
    for file, name in (each.split("::") for each in SLOW):
        assert file in TESTS
        assert f"def {name}(" in (ROOT / file).read_text()


def test_all_projects_claim_the_same_versions() -> None:
    folders = {path.parent for path in ROOT.glob("services/*/pyproject.toml")}
    assert {tuple(claimed_versions(each)) for each in folders} == {tuple(claimed_versions(ROOT))}


def test_an_interpreter_is_one_that_runs_and_is_of_that_version(tmp_path: Path) -> None:
    folder = tmp_path / "versions" / f"{OWN}.9" / "bin"
    folder.mkdir(parents=True)
    here = {"PATH": str(tmp_path), "PYENV_ROOT": str(tmp_path)}
    assert find_interpreter(OWN, here) is None
    for at, program in (
        (tmp_path, "#!/bin/sh\nexit 127\n"),
        (folder, f'#!/bin/sh\nexec {sys.executable} "$@"\n'),
    ):
        (at / f"python{OWN}").write_text(program)
        (at / f"python{OWN}").chmod(0o755)
    assert find_interpreter(OWN, here) == folder / f"python{OWN}"
    (folder / f"python{OWN}").rename(folder / "python3.99")
    folder.parent.rename(tmp_path / "versions" / "3.99.1")
    assert find_interpreter("3.99", here) is None
