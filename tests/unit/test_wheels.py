"""`make wheels`: what `pip install bettong` and `bettong setup` install is all there, and is what was checked."""

import hashlib
import tomllib
import zipfile
from email.parser import HeaderParser
from pathlib import Path

import pytest
from packaging.requirements import Requirement

from bettong.services import CONSOLE, SERVICES
from deploy.setup_plan import Tree
from deploy.wheels import build

ROOT = Path(__file__).parents[2]
TREE = Tree(ROOT)


@pytest.fixture(scope="module")
def wheels(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """By the name of the distribution."""
    return {each.name.partition("-")[0]: each for each in build(TREE, tmp_path_factory.mktemp("dist"))}


def manifest(project: Path) -> dict[str, object]:
    found: dict[str, object] = tomllib.loads((project / "pyproject.toml").read_text())["project"]
    return found


def names(wheel: Path) -> set[str]:
    with zipfile.ZipFile(wheel) as archive:
        return set(archive.namelist())


def test_there_is_one_of_each_project(wheels: dict[str, Path]) -> None:
    projects = {str(manifest(project)["name"]).replace("-", "_") for project in TREE.projects}
    assert set(wheels) == projects | {"bettong_jars"}


@pytest.mark.parametrize("project", TREE.projects, ids=lambda project: str(project.name))
def test_it_holds_every_file_of_its_package(project: Path, wheels: dict[str, Path]) -> None:
    package = str(manifest(project)["name"]).replace("-", "_")
    sources = project / "src" if (project / "src").exists() else project
    files = {
        str(path.relative_to(sources))
        for path in (sources / package).rglob("*")
        if path.is_file() and "__pycache__" not in path.parts
    }
    assert f"{package}/__init__.py" in files
    assert files - names(wheels[package]) == set()


def test_the_jars_are_those_that_are_pinned(wheels: dict[str, Path]) -> None:
    pinned = {
        name: total
        for total, name in (
            line.split() for line in (ROOT / "deploy/jars/jars.sha256").read_text().splitlines()
        )
    }
    with zipfile.ZipFile(wheels["bettong_jars"]) as archive:
        found = {
            name.partition(".data/data/share/bettong/jars/")[2]: hashlib.sha256(
                archive.read(name)
            ).hexdigest()
            for name in archive.namelist()
            if name.endswith(".jar")
        }
    assert found == pinned


def test_the_extra_local_is_everything_that_runs(wheels: dict[str, Path]) -> None:
    (metadata,) = (name for name in names(wheels["bettong"]) if name.endswith(".dist-info/METADATA"))
    with zipfile.ZipFile(wheels["bettong"]) as archive:
        headers = HeaderParser().parsestr(archive.read(metadata).decode())
    required = [Requirement(each) for each in headers.get_all("Requires-Dist", [])]
    local = {
        each.name for each in required if each.marker is not None and each.marker.evaluate({"extra": "local"})
    }
    always = {each.name for each in required if each.marker is None}
    assert local - always == {"bettong-jars", *(f"bettong-{name}" for name in (*SERVICES, CONSOLE))}
    own = {name.replace("_", "-"): wheel.name.split("-")[1] for name, wheel in wheels.items()}
    assert all(own[each.name] in each.specifier for each in required if each.name in own)
