"""How much memory a child of the guard may take."""

import os
from pathlib import Path

import pytest

from bettong_processor.crashes.memory import left_bytes, resident_bytes


@pytest.mark.parametrize(
    ("limit", "left"),
    [("max\n", 900 * 1024), ("700000\n", 700_000 - 600_000 + 300_000 - 100_000), (None, 900 * 1024)],
)
def test_the_memory_that_is_left_is_the_machines_and_the_control_groups(
    tmp_path: Path, limit: str | None, left: int
) -> None:
    proc, groups = tmp_path / "proc", tmp_path / "groups"
    group = groups / "kube" / "pod"
    (proc / "self").mkdir(parents=True)
    group.mkdir(parents=True)
    (proc / "meminfo").write_text("MemTotal:  1000 kB\nMemAvailable:   900 kB\n")
    (proc / "self" / "cgroup").write_text("0::/kube/pod\n")
    if limit is not None:
        (group / "memory.max").write_text(limit)
    (group / "memory.current").write_text("600000\n")
    (group / "memory.stat").write_text("anon 300000\nfile 300000\nshmem 100000\n")
    assert left_bytes(proc, groups) == left
    assert resident_bytes(os.getpid()) > 1 << 20
