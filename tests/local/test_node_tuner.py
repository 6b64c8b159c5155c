"""The node tuner on the machine of the test: two harmless sysctls, set and restored by the real command.

The values that were there are put back whatever happens. Where the machine lets nobody write them (a container), the
tuner has to say so of each: the test never passes without one or the other.
"""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bettong.local.addresses import free_ports
from tests.waiting import eventually

COMMAND = Path(sys.prefix) / "bin" / "bettong-node-tuner"
SOMAXCONN = Path("/proc/sys/net/core/somaxconn")
STAT_INTERVAL = Path("/proc/sys/vm/stat_interval")
FILES = (SOMAXCONN, STAT_INTERVAL)


def is_writable(path: Path) -> bool:
    """By writing what is there."""
    try:
        path.write_text(path.read_text())
    except OSError:
        return False
    return True


@pytest.fixture
def before() -> Iterator[dict[Path, str]]:
    found = {path: path.read_text() for path in FILES}
    yield found
    for path, text in found.items():
        if path.read_text() != text:
            path.write_text(text)


def environment(folder: Path, before: dict[Path, str]) -> dict[str, str]:
    backlog, seconds = int(before[SOMAXCONN]) + 1, int(before[STAT_INTERVAL]) + 1
    (port,) = free_ports(1)
    return {
        **os.environ,
        "BETTONG_NODE_TUNER_MODE": "apply",
        "BETTONG_NODE_TUNER_JOURNAL": str(folder),
        "BETTONG_NODE_TUNER_METRICS_LISTEN": f"127.0.0.1:{port}",
        "BETTONG_NODE_TUNER_BESIDE_OTHERS": "true",
        "BETTONG_NODE_TUNER_SYSCTLS": f'{{"net.core.somaxconn": "{backlog}", "vm.stat_interval": "{seconds}"}}',
    }


def test_this_machine_is_tuned_and_set_back(
    tmp_path: Path, before: dict[Path, str], capsys: pytest.CaptureFixture[str]
) -> None:
    variables = environment(tmp_path / "journal", before)
    writable = [path for path in FILES if is_writable(path)]
    log = tmp_path / "log"
    with log.open("w") as out:
        child = subprocess.Popen([COMMAND], env=variables, stderr=out)
        try:
            eventually(
                lambda: log.read_text().count("sysctls /proc/sys/") >= len(FILES), what="both are reported"
            )
            for path in FILES:
                changed = path.read_text() != before[path]
                assert changed == (path in writable), log.read_text()
                state = "tuned" if changed else "failed"
                assert f"sysctls {path}: {state}" in log.read_text()
            child.send_signal(signal.SIGTERM)
            assert child.wait(20) == 0, log.read_text()
        finally:
            child.kill()
            child.wait()
    assert {path: path.read_text() for path in FILES} == before
    with capsys.disabled():
        print(f"\nnode tuner: set and restored {[str(path) for path in writable]} of this machine")  # noqa: T201


def test_what_a_killed_tuner_leaves_the_next_sets_back(tmp_path: Path, before: dict[Path, str]) -> None:
    variables = environment(tmp_path / "journal", before)
    writable = {path for path in FILES if is_writable(path)}
    once = subprocess.run(
        [COMMAND, "--once"], env=variables, capture_output=True, text=True, check=False, timeout=60
    )
    assert once.returncode == (0 if writable == set(FILES) else 1), once
    assert {path for path in FILES if path.read_text() != before[path]} == writable
    revert = [str(COMMAND), "--mode", "revert", "--once"]
    subprocess.run(revert, env=variables, capture_output=True, check=True, timeout=60)
    assert {path: path.read_text() for path in FILES} == before
