"""Frames that kill a sender: what is found of a dead one, and what follows for the next."""

import asyncio
import os
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor, wait
from pathlib import Path

import pytest

from bettong.config.sender import refusal_sign
from bettong.identifiers import Origin, SequenceNumber
from bettong.v1.ingest_pb2 import Hello
from bettong_sender.deaths import UNNAMED, SenderDeath, care_for
from bettong_sender.guards import Guards
from bettong_sender.intake import Intake, Limits
from bettong_sender.marks import ReadingMarks, cause_of_death, dead_processes
from bettong_sender.status import SenderStatus
from tests.samples.sender import route
from tests.unit.test_sender_intake import SilentLog

KEEPS_THE_LOCK = """
import re
from bettong_sender.lock_watch import LockWatch
with LockWatch(0.2):
    re.match("(a+)+$", "a" * 40 + "b")
"""
ENDS = {
    "segfault": ("import ctypes; ctypes.string_at(0)", "signal 11 (Segmentation fault)"),
    "abort": ("os.abort()", "signal 6 (Aborted)"),
    "exit": ("os._exit(3)", "it left no crash report (os._exit, SIGKILL, or out of memory)"),
    "lock": (
        KEEPS_THE_LOCK,
        "it kept the interpreter's lock for longer than BETTONG_SENDER_LOCK_MS_MAX",
    ),
    "kill": ("os.kill(os.getpid(), 9)", "it left no crash report (os._exit, SIGKILL, or out of memory)"),
}


def death(
    row: int = UNNAMED, *, number: int = 0, alone: bool = True, last: bool = True, sequence: int = 7
) -> SenderDeath:
    return SenderDeath(
        f"{number}-{row}", Origin("orders/feed"), SequenceNumber(sequence), row, "signal 11", alone, last
    )


def no_touch(row: int) -> None:
    del row


def dies(folder: Path, end: str, *, sources: tuple[str, ...] = ("orders",), row: int | None = None) -> None:
    """A process that ends while it reads a frame of each source."""
    lines = [
        "import os, resource",
        "from pathlib import Path",
        "from bettong_sender.marks import ReadingMarks",
        "resource.setrlimit(resource.RLIMIT_CORE, (0, 0))",
        f"marks = ReadingMarks(Path({str(folder)!r}), {len(sources)})",
        *(f"marks.slot({each}).begin({name + '/feed'!r}, 7)" for each, name in enumerate(sources)),
        *([f"marks.slot(0).touch({row})"] if row is not None else []),
        end,
    ]
    done = subprocess.run([sys.executable, "-c", "\n".join(lines)], check=False, capture_output=True)
    assert done.returncode != 0, done.stderr


def deaths(folder: Path) -> list[tuple[SenderDeath | None, str]]:
    """What is found there, and forgotten."""
    found: list[tuple[SenderDeath | None, str]] = []
    for dead in dead_processes(folder):
        found += [(each, dead.words) for each in dead.deaths or (None,)]
        dead.forget()
    return found


@pytest.mark.parametrize("end", ENDS)
def test_a_dead_process_leaves_what_it_was_reading_and_how_it_ended_once(end: str, tmp_path: Path) -> None:
    code, how = ENDS[end]
    dies(tmp_path, code, row=5)
    ((found, words),) = deaths(tmp_path)
    assert found is not None
    assert (found.origin, found.sequence, found.row, found.how, found.alone) == (
        "orders/feed",
        7,
        5,
        how,
        True,
    )
    assert ("most recent call first" in words) == (end in ("segfault", "abort", "lock"))
    assert not list(deaths(tmp_path))
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "busy",
    [
        "while time.process_time() < 0.8: pass",  # lets other threads have their turns
        "import ctypes; ctypes.PyDLL(None).usleep(800_000)",  # as a process that is stopped: no CPU
    ],
)
def test_who_lets_others_run_or_gets_no_cpu_is_not_ended_for_keeping_the_lock(busy: str) -> None:
    lines = [
        "import time; from bettong_sender.lock_watch import LockWatch",
        "with LockWatch(0.2):",
        f"    {busy}",
    ]
    subprocess.run([sys.executable, "-c", "\n".join(lines)], check=True)


def test_who_lives_or_ended_well_or_read_nothing_is_not_taken_for_a_death(tmp_path: Path) -> None:
    marks = ReadingMarks(tmp_path, 1)
    marks.slot(0).begin(Origin("orders/feed"), SequenceNumber(1))
    assert not list(deaths(tmp_path))
    marks.close()
    assert not list(tmp_path.iterdir())
    dies(tmp_path, "marks.slot(0).end(); os._exit(1)")
    assert [found for found, _ in deaths(tmp_path)] == [None]


def test_two_that_were_read_at_the_same_time_are_suspects_and_no_more(tmp_path: Path) -> None:
    dies(tmp_path, "os._exit(1)", sources=("orders", "lines"))
    found = [death for death, _ in deaths(tmp_path) if death is not None]
    assert [(each.origin, each.alone) for each in found] == [("orders/feed", False), ("lines/feed", False)]
    assert [each.last for each in found] == [False, True]
    care = care_for([*found[:1], *(death(3, number=each, alone=False) for each in range(2))], no_touch)
    assert care is not None
    assert care.reason(3) is None


def test_what_was_begun_last_at_three_deaths_is_refused_though_others_were_being_read() -> None:
    """A decoder that is always busy, or never returns, is beside it at each of them."""
    killer = [death(3, number=each, alone=False) for each in range(3)]
    care = care_for([death(alone=False), *killer], no_touch)
    assert care is not None
    assert care.reason(3) == "a function of its source killed the sender 3 times: signal 11"
    assert care.reason(2) is None
    beside = [death(2, number=each, alone=False, last=False) for each in range(9)]
    care = care_for(beside, no_touch)
    assert care is not None
    assert care.reason(2) is None
    unnamed = [death(number=each, alone=False) for each in range(3)]
    care = care_for(unnamed, no_touch)
    assert care is not None
    assert care.reason(0) == "reading its frame killed the sender 3 times: signal 11"


def test_a_suspect_is_read_when_the_one_that_was_being_read_is_done_and_nobody_begins_before_it(
    tmp_path: Path,
) -> None:
    dies(tmp_path, "os._exit(1)")
    guards = Guards(["orders", "lines", "others"], folder=tmp_path)
    suspect, busy, other = (guards.of(name) for name in ("orders", "lines", "others"))
    busy.begin(Origin("lines/feed"), SequenceNumber(1))
    with ThreadPoolExecutor(3) as threads:
        reading = threads.submit(suspect.begin, Origin("orders/feed"), SequenceNumber(7))
        assert not wait((reading,), 1.5).done, "it waits for who was there before"
        beside = threads.submit(other.begin, Origin("others/feed"), SequenceNumber(1))
        busy.end()
        assert reading.result(30) is not None
        again = threads.submit(busy.begin, Origin("lines/feed"), SequenceNumber(2))
        assert not wait((beside, again), 0.3).done
        suspect.end()
        assert (beside.result(30), again.result(30)) == (None, None)
    guards.close()


def test_a_frame_that_is_refused_for_its_deaths_leaves_a_sign_that_the_sender_got_on(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    sign = refusal_sign(tmp_path, "marks")
    for row in (None, 3):
        dies(marks, "os._exit(1)", row=row)
        guards = Guards(["orders"], folder=marks)
        guards.of("orders").begin(Origin("orders/feed"), SequenceNumber(7))
        guards.of("orders").end()
        assert sign.exists() is (row is not None)
        guards.close()


def test_the_first_death_leads_to_care_and_the_second_names_the_message() -> None:
    assert care_for([], no_touch) is None
    first = care_for([death()], no_touch)
    assert first is not None
    assert first.reason(0) is None
    second = care_for([death(), death(4)], no_touch)
    assert second is not None
    assert second.reason(4) == "a function of its source killed the sender twice: signal 11"
    assert second.reason(3) is None


@pytest.mark.parametrize(
    "found", [[death(number=1), death(number=2)], [death(), death(1), death(4), death(6)]]
)
def test_a_frame_that_kills_whatever_is_left_out_is_refused_as_a_whole(found: list[SenderDeath]) -> None:
    care = care_for(found, no_touch)
    assert care is not None
    assert care.reason(0) == f"reading its frame killed the sender {len(found)} times: signal 11"


class Shared:
    """A store that all senders see."""

    def __init__(self) -> None:
        self.texts: dict[str, None] = {}

    def note(self, deaths: Sequence[str]) -> None:
        """See DeathStore."""
        self.texts |= dict.fromkeys(deaths)

    def known(self) -> list[str]:
        """See DeathStore."""
        return list(self.texts)


def test_every_sender_learns_of_a_death_and_counts_it_once(tmp_path: Path) -> None:
    store = Shared()
    dies(tmp_path, "os._exit(1)")
    heir = Guards(["orders"], folder=tmp_path, store=store)
    other = Guards(["orders"], store=store)
    assert heir.of("orders").begin(Origin("orders/feed"), SequenceNumber(7)) is not None
    heir.of("orders").end()
    for guards in (heir, other, heir, other):
        asyncio.run(guards.refresh())
    assert (
        len(other.over(Origin("orders/feed"), SequenceNumber(7)))
        == len(heir.over(Origin("orders/feed"), SequenceNumber(7)))
        == 1
    )
    assert other.of("orders").begin(Origin("orders/feed"), SequenceNumber(8)) is None
    heir.close()


def test_a_suspect_that_is_never_read_to_its_end_is_waited_for_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dies(tmp_path, "os._exit(1)")
    guards = Guards(["orders", "lines"], folder=tmp_path)
    assert guards.of("orders").begin(Origin("orders/feed"), SequenceNumber(7)) is not None
    monkeypatch.setattr("bettong_sender.guards._ALONE_S_MAX", 0.05)
    guards.of("lines").begin(Origin("lines/feed"), SequenceNumber(1))
    guards.of("lines").end()
    monkeypatch.setattr("bettong_sender.guards._ALONE_S_MAX", 10)
    begun_s = time.monotonic()
    guards.of("lines").begin(Origin("lines/feed"), SequenceNumber(2))
    assert time.monotonic() - begun_s < 8
    guards.close()


def test_a_suspect_that_is_late_ends_nobody_elses_turn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for source in ("orders", "lines"):
        dies(tmp_path, "os._exit(1)", sources=(source,))
    guards = Guards(["orders", "lines", "others"], folder=tmp_path)
    late, next_, other = (guards.of(name) for name in ("orders", "lines", "others"))
    late.begin(Origin("orders/feed"), SequenceNumber(7))
    for bound in ("_ALONE_S_MAX", "_OTHERS_S_MAX"):
        monkeypatch.setattr(f"bettong_sender.guards.{bound}", 0.05)
    next_.begin(Origin("lines/feed"), SequenceNumber(7))
    monkeypatch.setattr("bettong_sender.guards._ALONE_S_MAX", 60)
    late.end()
    with ThreadPoolExecutor(1) as threads:
        waiting = threads.submit(other.begin, Origin("others/feed"), SequenceNumber(1))
        assert not wait((waiting,), 0.3).done
        next_.end()
        assert waiting.result(30) is None
    guards.close()


def test_a_folder_that_cannot_be_used_costs_marks_and_nothing_else(tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("")
    guards = Guards(["orders"], folder=blocked)
    assert guards.of("orders").begin(Origin("orders/feed"), SequenceNumber(1)) is None
    guards.close()


@pytest.mark.parametrize("whose", ["folder", "above", "link"])
def test_marks_that_another_user_could_have_laid_are_not_believed(
    whose: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever may write into /tmp can be there before the sender."""
    folder = tmp_path / "marks" / "shop"
    folder.mkdir(parents=True)
    dies(folder, "os._exit(1)")
    if whose == "link":
        folder = folder.parent / "other"
        folder.symlink_to(tmp_path / "marks" / "shop")
    else:
        real = Path.lstat
        not_ours = folder if whose == "folder" else folder.parent

        def lstat(path: Path) -> os.stat_result:
            found = list(real(path))
            found[4] += 1 if path == not_ours else 0
            return os.stat_result(found)

        monkeypatch.setattr(Path, "lstat", lstat)
    guards = Guards(["orders"], folder=folder)
    assert not guards.over(Origin("orders/feed"), SequenceNumber(7))
    guards.close()


def test_only_files_are_read_and_the_start_waits_for_none(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "1-x.marks")
    dies(tmp_path, "os._exit(1)")
    (marks,) = (path for path in tmp_path.glob("*.marks") if path.is_file())
    aside = marks.rename(tmp_path / "aside")
    (tmp_path / "2-x.marks").symlink_to(aside)
    assert not [*ended(tmp_path)]
    aside.rename(marks)
    words = marks.with_suffix(".words")
    words.unlink()
    os.mkfifo(words)
    assert len(ended(tmp_path)) == 1


def ended(folder: Path) -> list[tuple[SenderDeath | None, str]]:
    """The deaths found there, soon."""
    found = ThreadPoolExecutor(1).submit(lambda: [*deaths(folder)])
    try:
        return found.result(10)
    finally:
        for path in folder.iterdir():  # whoever waits for its writer goes on
            if path.is_fifo():
                os.close(os.open(path, os.O_RDWR | os.O_NONBLOCK))


def test_last_words_of_another_kind_are_reported_as_they_are() -> None:
    assert cause_of_death("Fatal Python error: Bus error\n\nCurrent thread ...") == "signal 7 (Bus error)"
    assert cause_of_death("Fatal Python error: deallocating None\n") == "deallocating None"


class Hanging(Shared):
    """A store that does not answer."""

    def __init__(self) -> None:
        super().__init__()
        self.over = threading.Event()

    def known(self) -> list[str]:
        """See DeathStore."""
        self.over.wait(60)
        return super().known()


def test_a_session_does_not_wait_for_a_store_that_does_not_answer() -> None:
    store = Hanging()
    guards = Guards(["orders"], store=store)

    async def refreshed_s() -> float:
        begun_s = time.monotonic()
        await guards.refresh()
        took_s = time.monotonic() - begun_s
        store.over.set()
        return took_s

    assert asyncio.run(refreshed_s()) < 10


def test_a_topic_with_many_partitions_waits_for_that_store_once() -> None:
    """Its partitions are opened one after the other."""
    store = Hanging()

    async def opened_s() -> float:
        guards = Guards(["orders"], store=store)
        limits = Limits(credits=4, sessions_max=64, buffer_bytes_max=1 << 20)
        intake = Intake(
            "shop", {"orders": route()}, limits, SenderStatus(since_s=1), clock=lambda: 1, guards=guards
        )
        intake.use(SilentLog(), {})
        begun_s = time.monotonic()
        for partition in range(16):
            feed = intake.open_external(Hello(source="orders", stream=f"feed-{partition}"), "orders")
            await feed.open(SequenceNumber(0))
        took_s = time.monotonic() - begun_s
        store.over.set()
        intake.close()
        return took_s

    assert asyncio.run(opened_s()) < 10
