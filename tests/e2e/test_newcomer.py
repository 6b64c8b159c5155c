"""The first hour of someone new: the commands of docs/install.md, from built packages, without the source tree."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from deploy.setup_plan import Tree
from deploy.wheels import build

ROOT = Path(__file__).parents[2]
# Brings up loopback in a network that has nothing else, then becomes the command.
OFFLINE = """\
import fcntl, os, socket, struct, sys
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as any_socket:
    fcntl.ioctl(any_socket, 0x8914, struct.pack("16sh", b"lo", 1 | 64))
os.execvp(sys.argv[1], sys.argv[1:])
"""
FIRST_HOUR_S_MAX = 1500.0  # of which most are downloads


def commands() -> list[str]:
    """Those of the page, in order: up to the section behind them."""
    page = (ROOT / "docs" / "install.md").read_text().partition("\n## What `setup` installs")[0]
    blocks = re.findall(r"^```sh\n(.*?)^```", page, flags=re.MULTILINE | re.DOTALL)
    return [line for block in blocks for line in block.splitlines()]


def scripts(python: str = sys.executable, alone: str = "unshare --map-root-user --net") -> dict[str, str]:
    """As variables: $FIRST runs online, and at its end starts $REST in a network that reaches nothing, by `alone`."""
    lines = commands()
    border = next(number for number, line in enumerate(lines) if line.startswith("bettong up"))
    away = f'{alone} {python} -c "$OFFLINE" sh -c "$REST"'
    return {
        "FIRST": "\n".join(["set -ex", *lines[:border], away]),
        "REST": "\n".join(["set -ex", *lines[border:]]),
        "OFFLINE": OFFLINE,
    }


def bare_environment(**more: str) -> dict[str, str]:
    """That of a shell which nobody has set up, but for pip's settings of this machine; and these variables."""
    ours = ("BETTONG_", "PYTHON", "MAKE", "MFLAGS", "VIRTUAL_ENV")
    kept = {name: value for name, value in os.environ.items() if not name.startswith(ours)}
    return kept | {"PATH": os.defpath} | more


def make_packages(folder: Path) -> Path:
    """Builds the wheels in `folder`; returns a file of the versions that everything was tested with."""
    assert build(Tree(ROOT), folder)
    pins = re.sub(r" \\\n( +--hash=\S+( \\)?\n)+", "\n", (ROOT / "requirements.lock").read_text())
    (folder / "pins.txt").write_text(pins)
    return folder / "pins.txt"


def check_first_hour(printed: str) -> None:
    """Its tests passed, and the totals came out."""
    assert "2 passed" in printed
    totals = re.findall(r'^\{"account":.*\}$', printed, flags=re.MULTILINE)
    assert sorted(totals) == [
        '{"account":"ann","total":12.5}',
        '{"account":"ann","total":20.0}',
        '{"account":"bob","total":3.0}',
    ]


def test_the_page_has_ten_commands_and_a_way_into_the_environment_and_the_project() -> None:
    real = [line for line in commands() if not line.startswith((". ", "cd "))]
    assert len(real) == 10


@pytest.mark.long
@pytest.mark.timeout(FIRST_HOUR_S_MAX + 60)
def test_a_newcomer_gets_to_results_by_the_commands_of_the_page(tmp_path: Path) -> None:
    pins = make_packages(tmp_path / "dist")
    home = tmp_path / "home"
    home.mkdir()
    links = " ".join(filter(None, (os.environ.get("PIP_FIND_LINKS"), str(tmp_path / "dist"))))
    done = subprocess.run(
        ["sh", "-c", scripts()["FIRST"]],
        cwd=home,
        env=bare_environment(PIP_FIND_LINKS=links, PIP_CONSTRAINT=str(pins), **scripts()),
        check=False,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=FIRST_HOUR_S_MAX,
    )
    assert done.returncode == 0, done.stdout
    check_first_hour(done.stdout)
