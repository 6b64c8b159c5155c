"""What memory a container has: by its control groups, as the kernel shows them in files."""

from dataclasses import replace
from pathlib import Path

import pytest

from bettong.local.memory_limit import memory_limit_bytes
from bettong.local.prerequisites import Grade, examine
from tests.unit.test_prerequisites import READY

GB = 10**9
# As the first version says that there is none.
NO_LIMIT = "9223372036854771712"


@pytest.mark.parametrize(
    ("groups", "files", "limit"),
    [
        # The second version, in a container that sees itself as the root.
        ("0::/\n", {"memory.max": "2000000000\n"}, 2 * GB),
        ("0::/\n", {"memory.max": "max\n"}, None),
        # On the machine: a group's limit, and that of one above it.
        ("0::/user/app\n", {"user/app/memory.max": "max", "user/memory.max": "3000000000"}, 3 * GB),
        ("0::/user/app\n", {"user/app/memory.max": "1000000000", "user/memory.max": "3000000000"}, GB),
        # The first version; its path is that of the machine, and only the container's own group is seen.
        (
            "5:cpu:/docker/a\n4:memory:/docker/a\n0::/\n",
            {"memory/memory.limit_in_bytes": "4000000000"},
            4 * GB,
        ),
        ("4:memory,hugetlb:/a\n", {"memory/a/memory.limit_in_bytes": NO_LIMIT}, int(NO_LIMIT)),
        ("0::/../../elsewhere\n", {"memory.max": "5000000000"}, 5 * GB),
        ("5:cpu:/a\n", {"memory.max": "1"}, None),
    ],
)
def test_the_limit_is_the_least_of_a_process_and_the_groups_above_it(
    groups: str, files: dict[str, str], limit: int | None, tmp_path: Path
) -> None:
    (tmp_path / "proc/self").mkdir(parents=True)
    (tmp_path / "proc/self/cgroup").write_text(groups)
    for name, text in files.items():
        path = tmp_path / "sys/fs/cgroup" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    assert memory_limit_bytes(tmp_path) == limit


def test_where_there_are_no_control_groups_there_is_no_limit(tmp_path: Path) -> None:
    assert memory_limit_bytes(tmp_path) is None


@pytest.mark.parametrize(
    ("limit_gb", "grade", "text", "remedy"),
    [
        (None, Grade.GOOD, "16.0 GB of memory", ""),
        (9e9, Grade.GOOD, "16.0 GB of memory", ""),
        (
            8.0,
            Grade.GOOD,
            "8.0 GB of memory, 8 CPUs (the limit of this container; its machine has 16.0 GB)",
            "",
        ),
        (
            1.5,
            Grade.WARNING,
            "1.5 GB of memory, 8 CPUs (the limit of this container; its",
            "give the container more",
        ),
    ],
)
def test_doctor_tells_the_limit_of_a_container(
    limit_gb: float | None, grade: Grade, text: str, remedy: str
) -> None:
    facts = replace(READY, memory_limit_gb=limit_gb, cpus=8)
    found = next(each for each in examine(facts) if each.name == "memory")
    assert found.grade is grade
    assert found.text.startswith(text)
    assert found.remedy.startswith(remedy)
