"""The first hour of someone new in a clone: README's application, the commands of docs/install.md, a package added."""

import subprocess
import zipfile
from pathlib import Path

import pytest

from tests.e2e.test_newcomer import ROOT, bare_environment, check_first_hour
from tests.samples.page_code import blocks

INSTALL, README = ROOT / "docs" / "install.md", ROOT / "README.md"
SCRIPT_S_MAX = 1500.0  # the first of three, most of which is setup; where nothing is cached, downloads


def from_the_source_tree() -> list[str]:
    """The commands of the page, in order."""
    section = INSTALL.read_text().partition("\n## From the source tree\n")[2]
    return section.partition("```sh\n")[2].partition("```")[0].splitlines()


def first_application() -> tuple[str, str]:
    """README's hello.py, and the commands that follow it."""
    (code,) = blocks(README, "python")
    (script,) = (block for block in blocks(README, "sh") if "bettong up hello.py" in block)
    return code, script


def play(folder: Path, *lines: str) -> str:
    """What a shell without our environment prints; each command must succeed."""
    done = subprocess.run(
        ["sh", "-c", "\n".join(["set -ex", *lines])],
        cwd=folder,
        env=bare_environment(),
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=SCRIPT_S_MAX,
    )
    assert done.returncode == 0, done.stdout
    return done.stdout


def a_package(folder: Path) -> Path:
    """A wheel with one module, `added`."""
    wheel, about = folder / "added-1.0-py3-none-any.whl", "added-1.0.dist-info"
    with zipfile.ZipFile(wheel, "w") as made:
        made.writestr("added.py", "")
        made.writestr(f"{about}/METADATA", "Metadata-Version: 2.1\nName: added\nVersion: 1.0\n")
        made.writestr(f"{about}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        made.writestr(f"{about}/RECORD", "")
    return wheel


def test_the_page_leads_into_the_environment_of_the_clone_and_out_of_its_folder() -> None:
    commands = from_the_source_tree()
    assert commands[:3] == ["make setup", ". .venv/bin/activate", "cd .."]
    assert commands[-1] == "bettong down"
    hello, script = first_application()
    assert script.startswith(". .venv/bin/activate\n")
    assert len([line for line in hello.splitlines() if line]) <= 12


@pytest.mark.long
@pytest.mark.timeout(3 * SCRIPT_S_MAX)
def test_a_newcomer_gets_to_results_in_a_clone_and_what_is_added_stays(tmp_path: Path) -> None:
    clone = tmp_path / "bettong"
    subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
    check_first_hour(play(clone, *from_the_source_tree()))
    hello, script = first_application()
    (clone / "hello.py").write_text(hello)
    assert '\n{"account":"ann","amount":12.5}\n' in play(clone, script)
    wheel = a_package(tmp_path)
    where = "python -c 'import added; print(added.__file__)'"
    printed = play(clone, ". .venv/bin/activate", f"pip install --no-index {wheel}", where)
    assert f"\n{clone}/.venv/lib/" in printed
    # All that follows the lock is done again.
    with (clone / "requirements.lock").open("a") as lock:
        lock.write("# changed\n")
    printed = play(clone, "make setup", ". .venv/bin/activate", where, "bettong --version")
    assert "setup: Python packages (requirements.lock):" in printed
    assert f"\n{clone}/.venv/lib/" in printed
