"""`bettong init`: the project that it makes is right, and nothing is ever overwritten."""

import json
import subprocess
import sys
import tomllib
from importlib.metadata import version
from pathlib import Path
from typing import Any

import jsonschema
import pytest
import yaml
from dockerfile_parse import DockerfileParser
from packaging.requirements import Requirement

from bettong.application.plan import plan
from bettong.cli.ending import end_well
from bettong.cli.exit_codes import USAGE
from bettong.cli.main import app
from bettong.edges.application_file import load
from bettong.errors import LocalError

ROOT = Path(__file__).parents[2]


def init(*arguments: str) -> int:
    return end_well(app, ["init", *arguments], name="bettong")


def merged(defaults: Any, values: Any) -> Any:
    """As helm does: map by map."""
    if not (isinstance(defaults, dict) and isinstance(values, dict)):
        return values
    return defaults | {name: merged(defaults.get(name), value) for name, value in values.items()}


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    assert init("pay-totals") == 0
    return tmp_path / "pay-totals"


def test_its_own_tests_pass(project: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=project,
        check=False,
        capture_output=True,
        text=True,
    )
    assert "2 passed" in done.stdout, done.stdout + done.stderr


def test_the_application_takes_the_messages_beside_it(project: Path) -> None:
    (source,) = plan(load(str(project / "app.py"))).sources
    rows = [json.loads(line) for line in (project / "payments.jsonl").read_text().splitlines()]
    assert [source.schema.message(**row).account for row in rows] == ["ann", "bob", "ann"]


def test_it_asks_for_this_version(project: Path) -> None:
    manifest = tomllib.loads((project / "pyproject.toml").read_text())
    assert manifest["project"]["name"] == "pay-totals"
    (requirement,) = map(Requirement, manifest["project"]["dependencies"])
    assert (requirement.name, requirement.extras) == ("bettong", {"local"})
    assert version("bettong") in requirement.specifier


def test_its_image_holds_the_application_where_its_values_say(project: Path) -> None:
    values = yaml.safe_load((project / "values.yaml").read_text())
    chart = ROOT / "deploy/helm/bettong"
    defaults = yaml.safe_load((chart / "values.yaml").read_text())
    schema = json.loads((chart / "values.schema.json").read_text())
    jsonschema.validate(merged(defaults, values), schema)
    dockerfile = DockerfileParser(str(project / "Dockerfile"))
    (copy,) = (each["value"] for each in dockerfile.structure if each["instruction"] == "COPY")
    source, folder = copy.split()
    assert values["application"]["path"] == f"{folder}{source}"
    assert dockerfile.baseimage == f"bettong/processor:{version('bettong')}"


def test_what_runs_leaves_out_of_the_repository_is_ignored(project: Path) -> None:
    assert ".bettong/" in (project / ".gitignore").read_text().splitlines()


@pytest.mark.parametrize(
    "name",
    ["", "Totals", "1st", "a_b", "a--b", "-a", "../up", "/x", "a b", "a" * 41, "a\n", "ä", ".hidden"],
)
def test_a_name_that_no_package_or_release_could_have_is_refused(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert init("--", name) == USAGE
    assert list(tmp_path.iterdir()) == []


def test_nothing_is_overwritten(project: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (project / "app.py").write_text("mine")
    assert init("pay-totals") == LocalError.exit_code
    assert "pay-totals exists already" in capsys.readouterr().err
    assert (project / "app.py").read_text() == "mine"
