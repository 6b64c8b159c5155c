"""What `python -m benchmarks.peers` says of memory, of stored state, and of the CPU that is nobody's."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from rich.console import Console

from benchmarks.measuring import Sample
from benchmarks.peers.__main__ import _footprints
from benchmarks.peers.ceilings import ceilings
from benchmarks.peers.entries import entries_of
from benchmarks.peers.footprint import METRICS, bytes_below, memory_mb
from benchmarks.peers.race import FEEDING, feeding_cpu_s
from benchmarks.peers.workloads import MARKET_SPREAD, WORKLOADS

_HOLDS_MB = 64
_PROGRAM = f"data = b'x' * ({_HOLDS_MB} << 20); print('ready', flush=True); input()"


def test_memory_is_that_of_a_process_and_all_below_it() -> None:
    alone_mb = memory_mb([os.getpid()])
    with subprocess.Popen(
        [sys.executable, "-c", _PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "ready\n"
        child_mb, both_mb = memory_mb([child.pid]), memory_mb([os.getpid()])
        child.communicate("\n")
    assert _HOLDS_MB < child_mb < _HOLDS_MB + 64
    assert both_mb > alone_mb / 2 + _HOLDS_MB, "pages that both use count once"


def test_stored_bytes_are_those_of_all_files_below_a_folder(tmp_path: Path) -> None:
    assert bytes_below(tmp_path) == 0
    (tmp_path / "0" / "checkpoints").mkdir(parents=True)
    (tmp_path / "0" / "checkpoints" / "one").write_bytes(bytes(1000))
    (tmp_path / "two").write_bytes(bytes(24))
    (tmp_path / "removed").symlink_to(tmp_path / "nowhere")
    assert bytes_below(tmp_path) == 1024


def test_growth_is_the_median_of_the_differences_of_runs() -> None:
    first, second, *_ = entries_of(WORKLOADS["nexmark-q0"])
    assert [each.unit for each in first.measurements] == ["messages/s", *(unit for _, unit in METRICS)]
    runs: list[list[float]] = [[9e9, 9e9, 9e9], [100, 900, 200], [110, 905, 230], [1, 2, 3]]
    for measurement, values in zip(first.measurements, runs, strict=True):
        measurement.samples += [Sample(value) for value in values]
    console = Console(width=200)
    with console.capture() as shown:
        console.print(_footprints([first, second], "title"))
    row = next(line for line in shown.get().splitlines() if first.name in line)
    assert [cell.strip() for cell in row.split("│")[2:-1]] == ["200.0", "230.0", "10.0", "2.0"]
    assert second.name not in shown.get(), "it has not run"


class _Contestant:
    def __init__(self, pid: int) -> None:
        self._pid = pid

    def pids(self) -> list[int]:
        return [self._pid]

    def check(self) -> None:
        raise AssertionError

    def stored_bytes(self) -> int:
        raise AssertionError


def test_the_cpu_of_what_feeds_is_that_of_all_but_the_contestant() -> None:
    spins = "import time\nwhile time.process_time() < 0.5: pass\nprint('spun', flush=True); input()"
    with subprocess.Popen(
        [sys.executable, "-c", spins], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as child:
        assert child.stdout is not None
        assert child.stdout.readline() == "spun\n"
        with_child_s, without_s = (
            feeding_cpu_s(_Contestant(os.getpid())),
            feeding_cpu_s(_Contestant(child.pid)),
        )
        child.communicate("\n")
    assert 0.4 < with_child_s - without_s < 1.0


def test_the_highest_speed_is_what_the_cores_could_feed_and_read() -> None:
    first, second, *_ = entries_of(WORKLOADS["nexmark-q0"])
    first.measurements[0].samples += [Sample(100_000, own, {FEEDING: 8.0}) for own in (11.0, 12.0, 17.0)]
    console = Console(width=200)
    with console.capture() as text:
        console.print(ceilings([first, second], 2))
    row = next(line for line in text.get().splitlines() if first.name in line)
    assert [cell.strip() for cell in row.split("│")[2:-1]] == ["12.00", "8.00", "100%", "250,000"]
    assert second.name not in text.get(), "it has not run"


def test_who_is_raced_by_frames_of_its_own_has_a_speed_alone() -> None:
    own = [each for each in entries_of(MARKET_SPREAD) if each.name.endswith("its own frames")]
    assert own
    assert all([each.unit for each in entry.measurements] == ["messages/s"] for entry in own)
