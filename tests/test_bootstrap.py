"""What `make setup` decides: prerequisites, due steps, what may be installed; and how failures are reported."""

from __future__ import annotations

import subprocess
import sys
import tarfile
from dataclasses import replace
from importlib.metadata import distribution, version
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name as canonical

from deploy.bootstrap import Setup, install_servers, is_there, jar_sums, opened
from deploy.setup_plan import (
    SetupError,
    Step,
    SystemServer,
    Tree,
    backoff_s,
    digest,
    due,
    faults,
    java_identity,
    java_major,
    may_install,
    may_run,
    uv_settings,
    wrong_jars,
    wrong_package,
)
from tests.looked_at import has_ended
from tests.samples.setup import GOOD, a_tree
from tests.waiting import eventually


@pytest.mark.parametrize(
    ("banner", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('java version "1.8.0_402"', 8),
        ('openjdk version "22-ea" 2024-03-19', 22),
        ("command not found", None),
    ],
)
def test_java_tells_its_version_in_many_ways(banner: str, major: int | None) -> None:
    assert java_major(banner) == major


def test_a_machine_with_everything_has_no_faults() -> None:
    assert faults(GOOD) == []


def test_all_faults_are_reported_at_once_each_in_one_line_with_its_command() -> None:
    bare = replace(GOOD, python=(3, 9), java_banner=None, tools=frozenset())
    assert faults(bare) == [
        "Python 3.9 is too old: run `make setup PYTHON=python3.11` (or newer)",
        "java is missing: run `sudo apt-get install -y openjdk-17-jre-headless`",
        "mvn is missing: run `sudo apt-get install -y maven`",
        "git is missing: run `sudo apt-get install -y git`",
    ]


def test_a_python_that_was_not_tested_is_a_fault() -> None:
    (line,) = faults(replace(GOOD, python=(3, 99)))
    assert line.startswith("Python 3.99 is newer than what is tested: run `make setup PYTHON=python3.")


def test_an_old_java_is_a_fault_and_root_needs_no_sudo() -> None:
    old = replace(GOOD, java_banner='java version "1.8.0_402"', is_root=True)
    (line,) = faults(old)
    assert line.startswith("Java 8 is installed")
    assert line.endswith("run `apt-get install -y openjdk-17-jre-headless`")


def test_only_root_installs_system_packages_and_others_are_told_the_command() -> None:
    may_install("redis-server", what="a Redis server", machine=replace(GOOD, is_root=True))
    with pytest.raises(
        SetupError, match="missing: run `sudo apt-get install -y redis-server`, then `make setup`"
    ):
        may_install("redis-server", what="a Redis server", machine=GOOD)
    with pytest.raises(SetupError, match="equivalent of Debian's redis-server"):
        may_install("redis-server", what="a Redis server", machine=replace(GOOD, is_root=True, has_apt=False))


def test_a_server_is_found_on_the_path_and_where_debian_keeps_versions(tmp_path: Path) -> None:
    assert is_there(SystemServer("sh", "dash", "a shell"))
    assert not is_there(SystemServer("no-such-server", "none", "nothing"))
    absent = SystemServer("no-such-server", "none", "nothing", f"{tmp_path}/*/bin")
    assert not is_there(absent)
    (tmp_path / "15" / "bin").mkdir(parents=True)
    (tmp_path / "15" / "bin" / "no-such-server").touch()
    assert is_there(absent)


def test_without_a_server_that_only_some_tests_need_a_setup_goes_on(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    setup = Setup(Tree(tmp_path), GOOD)  # no root
    needed = SystemServer("needed", "needed", "a server that all need")
    install_servers(setup, [replace(needed, may_be_missing=True)])
    said = capsys.readouterr().out
    assert "setup: a server that all need is missing: run `sudo apt-get install -y needed`" in said
    assert said.endswith("setup: going on without it, its tests are left out\n")
    with pytest.raises(SetupError, match="a server that all need is missing"):
        install_servers(setup, [needed])


def test_a_digest_counts_the_borders_between_its_parts() -> None:
    assert digest(["ab", "c"]) != digest(["a", "bc"])
    assert digest(["a", "b"]) == digest(iter(["a", "b"]))


STEPS = [Step("one", "", ("x",), (Path("o1"),)), Step("two", "", ("x", "y"), (Path("o2"),))]
STAMPS = {step.name: digest(step.inputs) for step in STEPS}


def test_a_complete_setup_has_nothing_due() -> None:
    assert due(STEPS, STAMPS, lambda _: True) == []


def test_a_step_is_due_without_a_stamp_with_an_old_stamp_or_without_its_output() -> None:
    one, two = STEPS
    assert due(STEPS, {}, lambda _: True) == STEPS
    assert due(STEPS, {**STAMPS, "two": digest(["older"])}, lambda _: True) == [two]
    assert due(STEPS, STAMPS, lambda path: path != Path("o1")) == [one]


def test_waits_between_attempts_grow() -> None:
    assert [backoff_s(attempt) for attempt in (1, 2)] == [2.0, 8.0]


def test_settings_of_pip_hold_for_uv_unless_uv_has_its_own() -> None:
    settings = uv_settings({"PIP_INDEX_URL": "mine", "PIP_CERT": "ca", "SSL_CERT_FILE": "own", "HOME": "h"})
    assert settings["UV_DEFAULT_INDEX"] == "mine"
    assert settings["SSL_CERT_FILE"] == "own"
    assert settings["PIP_INDEX_URL"] == "mine"
    assert settings["HOME"] == "h"
    assert "UV_INDEX" not in settings
    assert uv_settings({"PIP_FIND_LINKS": "a b"})["UV_FIND_LINKS"] == "a,b"


def test_jars_must_be_exactly_those_of_the_list() -> None:
    wanted = "11  broker/a.jar\n22  broker/b.jar\n"
    assert wrong_jars(wanted, {"broker/a.jar": "11", "broker/b.jar": "22"}) == []
    assert wrong_jars(wanted, {"broker/a.jar": "99", "broker/c.jar": "33"}) == [
        "broker/a.jar: other content",
        "broker/b.jar: missing",
        "broker/c.jar: not in jars.sha256",
    ]


def test_a_package_must_be_the_one_that_is_pinned() -> None:
    of_nothing = (
        "sha512-z4PhNX7vuL3xVChQ1m2AB9Yg5AULVxXcg/SpIdNs6c5H0NE8XYXysP+DGNKHfuwvY7kxvUdBeoGlODJ6+SfaPg=="
    )
    assert wrong_package(of_nothing, b"") is None
    assert wrong_package(of_nothing, b"else").startswith("its sha512 is ")  # type: ignore[union-attr]


def test_helm_is_fetched_only_where_it_runs() -> None:
    may_run("x86_64", "x86_64")
    with pytest.raises(SetupError, match="comes for x86_64, this machine is aarch64"):
        may_run("x86_64", "aarch64")


def test_a_file_that_an_archive_lacks_is_named(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tgz", "w:gz") as archive:
        archive.add(__file__, "package/some.py")
    with tarfile.open(tmp_path / "a.tgz") as archive:
        assert opened(archive, "package/some.py").read() == Path(__file__).read_bytes()
        with pytest.raises(SetupError, match=r"the package holds no file package/layer\.zip"):
            opened(archive, "package/layer.zip")


def test_only_tests_need_helm_and_a_new_pin_fetches_it_again(tmp_path: Path) -> None:
    tree = a_tree(tmp_path)
    (tmp_path / "deploy").mkdir()
    (tmp_path / "deploy/helm-package.json").write_text("1")
    stamps = {step.name: digest(step.inputs) for step in tree.test_steps()}
    assert "helm" not in {step.name for step in tree.steps()}
    assert due(tree.test_steps(), stamps, lambda _: True) == []
    (tmp_path / "deploy/helm-package.json").write_text("2")
    assert [step.name for step in due(tree.test_steps(), stamps, lambda _: True)] == ["helm"]


def names_due(tree: Tree) -> list[str]:
    stamps = {step.name: digest(step.inputs) for step in tree.steps()}
    (tree.root / "protos/a.proto").write_text("changed")
    return [step.name for step in due(tree.steps(), stamps, lambda _: True)]


def test_a_changed_proto_is_compiled_and_nothing_else_is_done(tmp_path: Path) -> None:
    assert names_due(a_tree(tmp_path)) == ["protos"]


def test_linters_need_the_first_steps_alone(tmp_path: Path) -> None:
    tree = a_tree(tmp_path)
    steps = tree.steps()
    assert tree.python_steps() == steps[:5]
    assert {step.name for step in steps[5:]} == {"jars", "archives"}


def test_a_changed_lock_renews_what_is_built_on_it_but_no_jars(tmp_path: Path) -> None:
    tree = a_tree(tmp_path)
    stamps = {step.name: digest(step.inputs) for step in tree.steps()}
    (tmp_path / "requirements.lock").write_text("changed")
    assert [step.name for step in due(tree.steps(), stamps, lambda _: True)] == [
        "packages",
        "protos",
        "projects",
        "archives",
    ]


def test_a_java_is_known_by_its_classes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program, classes = tmp_path / "bin" / "java", tmp_path / "lib" / "modules"
    for path in (program, classes):
        path.parent.mkdir()
        path.write_text("17")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", str(program.parent))
    before = java_identity()
    assert str(classes) in before
    assert java_identity() == before
    classes.write_text("17.0.15")
    assert java_identity() != before
    monkeypatch.setenv("PATH", "")
    assert java_identity() == ""


def test_a_tree_that_was_moved_is_made_anew(tmp_path: Path) -> None:
    before, after = a_tree(tmp_path / "a"), a_tree(tmp_path / "b")
    stamps = {step.name: digest(step.inputs) for step in before.steps()}
    assert due(after.steps(), stamps, lambda _: True) == after.steps()


def test_the_projects_are_the_library_and_the_services(tmp_path: Path) -> None:
    assert a_tree(tmp_path).projects == [tmp_path, tmp_path / "services" / "sender"]


def test_a_failed_command_is_reported_with_its_log_and_the_end_of_it(tmp_path: Path) -> None:
    setup = Setup(a_tree(tmp_path), GOOD)
    command = [sys.executable, "-c", "print('the reason'); raise SystemExit(3)"]
    with pytest.raises(SetupError, match=r"exit code 3(?s:.*)packages\.log(?s:.*)the reason"):
        setup.run("packages", command)


def test_an_interrupted_command_leaves_no_process_behind(tmp_path: Path) -> None:
    setup = Setup(a_tree(tmp_path), GOOD)
    # A command with a child of its own, which tells its number and then interrupts us, as Ctrl-C would.
    script = (
        "import os, signal, subprocess, sys;"
        "child = subprocess.Popen(['sleep', '60']);"
        "open('child', 'w').write(str(child.pid));"
        "os.kill(os.getppid(), signal.SIGINT);"
        "child.wait()"
    )
    with pytest.raises(KeyboardInterrupt):
        setup.run("packages", [sys.executable, "-c", script])
    child = int((tmp_path / "child").read_text())
    # Killed it is; the kernel may still be at it.
    eventually(lambda: has_ended(child))


def test_jar_sums_name_jars_by_module(tmp_path: Path) -> None:
    (tmp_path / "broker").mkdir()
    (tmp_path / "broker" / "a.jar").write_bytes(b"a")
    assert list(jar_sums(tmp_path)) == ["broker/a.jar"]


@pytest.mark.parametrize("name", ["bettong", "bettong-sender", "bettong-processor", "bettong-receiver"])
def test_the_lock_fits_the_manifest(name: str) -> None:
    requirements = [Requirement(text) for text in distribution(name).requires or ()]
    wrong = [
        f"{name} wants {requirement}, requirements.lock has {version(requirement.name)}: run `make lock`"
        for requirement in requirements
        if (requirement.marker is None or requirement.marker.evaluate())
        and version(requirement.name) not in requirement.specifier
    ]
    assert not wrong, "\n".join(wrong)


def test_the_lock_holds_what_its_packages_need() -> None:
    """Setup installs it as it stands, and resolves nothing."""
    lines = (Path(__file__).parents[1] / "requirements.lock").read_text().splitlines()
    locked = [Requirement(line.removesuffix("\\")) for line in lines if line[:1].isalnum()]
    here = {canonical(each.name) for each in locked if each.marker is None or each.marker.evaluate()}
    needed = {
        canonical(each.name): f"{each} of {name}"
        for name in here
        for each in map(Requirement, distribution(name).requires or ())
        if each.marker is None or each.marker.evaluate({"extra": ""})
    }
    assert len(here) > 100
    assert [needed[name] for name in needed.keys() - here] == []


def test_pip_of_the_environment_installs_into_the_environment() -> None:
    """Without one there, `pip install` in it was that of the machine, behind its user's back."""
    pip = Path(sys.prefix) / "bin" / "pip"
    said = subprocess.run([pip, "--version"], check=True, capture_output=True, text=True).stdout
    assert f" from {sys.prefix}/" in said


def test_packages_that_a_user_has_added_stay(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Only uv's `sync` removes what is not in its list."""
    called: list[tuple[str, ...]] = []
    monkeypatch.setattr(Setup, "_uv", lambda _, *words: called.append(words))
    Setup(Tree(tmp_path), GOOD)._make_packages()
    ((_, verb, *_),) = called
    assert verb == "install"
