"""Whether a worker's CPUs are its own."""

import os
from pathlib import Path

import pytest

from bettong.cli.status_texts import summary
from bettong.identifiers import PartitionId
from bettong.inspection.overview import overview
from bettong_processor.cpus import Cpus, listed, read_cpus

MACHINE = listed("0-7")


@pytest.mark.parametrize(
    ("text", "cpus"),
    [("0-3,8\n", {0, 1, 2, 3, 8}), ("5", {5}), ("", set()), ("0,2,4-5", {0, 2, 4, 5})],
)
def test_lists_of_linux_are_read(text: str, cpus: set[int]) -> None:
    assert listed(text) == cpus


@pytest.mark.parametrize(
    ("own", "promised", "reported", "words"),
    [
        ("2-3", 2, {"cpus": 2, "exclusive": 1}, "2 of 8 CPUs, its own"),
        ("2-7", 2, {"cpus": 6, "exclusive": 0}, "6 of 8 CPUs, shared with others, 2 of its own were"),
        ("0-7", 8, {"cpus": 8, "exclusive": 0}, "8 of 8 CPUs, shared"),
        ("2-3", 0, {"cpus": 2}, "2 of 8 CPUs, none promised"),
    ],
)
def test_cpus_are_its_own_when_they_are_as_many_as_promised_and_not_all(
    own: str, promised: int, reported: dict[str, int], words: str
) -> None:
    found = Cpus(listed(own), MACHINE, promised)
    assert found.description().startswith(words)
    assert found.metrics() == reported
    assert found.broken is (reported.get("exclusive") == 0)


def test_this_machine_is_looked_at(tmp_path: Path) -> None:
    found = read_cpus(1)
    assert found.own == os.sched_getaffinity(0)
    assert found.own <= found.machine
    assert read_cpus(1, tmp_path / "none").machine, "a machine that does not tell"


def test_status_says_where_a_promise_is_not_kept() -> None:
    reported = {"offset": "1", "cpus": "6", "exclusive": "0"}
    kept = {**reported, "exclusive": "1"}
    found = overview(
        {},
        {
            PartitionId("a", 0): reported,
            PartitionId("a", 1): kept,
            PartitionId("b", 3): reported,
            PartitionId("b", 4): {"offset": "1"},
        },
    )
    assert found.shared == ("a/0", "b/3")
    assert "2 partitions are folded on shared CPUs[/yellow]: a/0, b/3" in summary(found)[-1]
    assert "shared" not in " ".join(summary(overview({}, {PartitionId("a", 1): kept})))
