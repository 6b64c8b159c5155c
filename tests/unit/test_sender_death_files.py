"""Files of marks of a sender: their room, and how long those of the dead are kept."""

import asyncio
import resource
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, cast

import pytest

from bettong.errors import StoreError
from bettong.identifiers import Origin, SequenceNumber
from bettong_sender.guards import Guards
from bettong_sender.marks import ReadingMarks, dead_processes
from tests.unit.test_sender_deaths import Shared, deaths, dies


class Full(Shared):
    """A store that takes no writes, as Redis at its `maxmemory`."""

    full = True

    def note(self, deaths: Sequence[str]) -> None:
        """See DeathStore."""
        if self.full:
            raise StoreError("OOM command not allowed when used memory > 'maxmemory'")
        super().note(deaths)


def test_a_death_that_could_not_be_told_is_found_again_by_the_next_sender(tmp_path: Path) -> None:
    """Sources that read topics go on without Redis: a record that kills would kill for ever."""
    store = Full()
    for number in range(3):
        dies(tmp_path, "os._exit(1)", row=4)
        code = f"""
import asyncio, os
from pathlib import Path
from bettong_sender.guards import Guards
from tests.unit.test_sender_death_files import Full
guards = Guards(["orders"], folder=Path({str(tmp_path)!r}), store=Full())
asyncio.run(guards.refresh())
print(len(guards.over("orders/feed", 7)), flush=True)
os._exit(1)  # without a word, and without having read anything
"""
        done = subprocess.run([sys.executable, "-c", code], check=False, capture_output=True, text=True)
        assert done.stdout == f"{number + 1}\n", done.stderr
    heir = Guards(["orders"], folder=tmp_path, store=store)
    other = Guards(["orders"], folder=tmp_path, store=store)
    frame = (Origin("orders/feed"), SequenceNumber(7))
    assert (len(heir.over(*frame)), len(other.over(*frame))) == (3, 0)
    assert len(list(tmp_path.glob("*.marks"))) == 3 + 2
    store.full = False
    for guards in (heir, other):
        asyncio.run(guards.refresh())
    assert (len(heir.over(*frame)), len(other.over(*frame))) == (3, 3)
    assert len(list(tmp_path.glob("*.marks"))) == 2
    heir.close()
    other.close()
    assert not list(tmp_path.iterdir())


def test_no_more_dead_are_kept_in_mind_than_are_of_use(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("bettong_sender.marks._DEAD_MAX", 2)
    for row in range(3):
        dies(tmp_path, "os._exit(1)", row=row)
    found = dead_processes(tmp_path)
    assert len(found) == 3
    assert len(list(tmp_path.glob("*.marks"))) == 2
    for dead in found:
        dead.release()
    assert [each.row for each, _ in deaths(tmp_path) if each is not None] == [1, 2]


def test_room_for_marks_is_taken_before_they_are_written(tmp_path: Path) -> None:
    """Else a full disk would end the sender with SIGBUS at a mark."""
    marks = ReadingMarks(tmp_path, 64)
    (path,) = tmp_path.glob("*.marks")
    assert path.stat().st_blocks * 512 >= path.stat().st_size == 64 * 1024
    marks.close()


def test_a_disk_without_room_for_marks_costs_marks_and_nothing_else(tmp_path: Path) -> None:
    said = SilentLogger()
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
    try:
        guards = Guards(["orders"], folder=tmp_path, logger=cast("Any", said))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert "is there room?" in said.warned[0]
    assert guards.of("orders").begin(Origin("orders/feed"), SequenceNumber(1)) is None
    guards.of("orders").end()
    guards.close()
    assert not list(tmp_path.iterdir())


class SilentLogger:
    """Keeps the reasons of warnings."""

    def __init__(self) -> None:
        self.warned: list[str] = []

    def warning(self, _: str, *, reason: str) -> None:
        """See BoundLogger."""
        self.warned.append(reason)
