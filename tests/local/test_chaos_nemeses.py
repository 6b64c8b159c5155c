"""Faults on real processes: done, mended, and missed when there is nobody to do them to."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from bettong.chaos import disk
from bettong.chaos.clock import MovableClock
from bettong.chaos.disk import SmallDisk
from bettong.chaos.nemeses import Arena, Nemesis
from bettong.chaos.proxy import Proxy
from bettong.chaos.spec import Link, OtherProcess
from bettong.chaos.timetable import PlannedFault
from bettong.chaos.victims import processes
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import LocalError, StoreError
from bettong.identifiers import PartitionId
from bettong.local.record import ProcessRecord, ServiceRecord, SuiteRecord
from bettong.local.redis_server import RedisServer
from bettong.local.services import SECOND
from bettong.services import PROCESSOR, SENDER
from tests.waiting import eventually

STAGE = PartitionId("stage", 0)
SLEEPER = [sys.executable, "-c", "import time; time.sleep(600)"]


@pytest.fixture
def sleepers() -> Iterator[dict[str, ServiceRecord]]:
    """Processes that stand for a sender and a receiver."""
    started = {name: subprocess.Popen(SLEEPER) for name in ("sender", "receiver")}
    yield {
        name: ServiceRecord(
            pid=each.pid, started_s=psutil.Process(each.pid).create_time(), log=Path(os.devnull)
        )
        for name, each in started.items()
    }
    for each in started.values():
        each.kill()
        each.wait()


def suite(services: dict[str, ServiceRecord], redis: str = "redis://127.0.0.1:1/0") -> SuiteRecord:
    return SuiteRecord(
        application="app.py",
        name="app",
        schedule="micro-batch",
        partitions=1,
        compiled=True,
        directory=Path(os.devnull),
        results=None,
        kafka="",
        redis=redis,
        snapshots="redis",
        addresses={},
        ready=True,
        owner=ProcessRecord.own(),
        services=services,
    )


def fault(kind: str, *targets: str, for_s: float = 0.0, by: float = 0.0, number: int = 1) -> PlannedFault:
    return PlannedFault(number, 0.0, kind, targets, for_s, by, 0.0)


def status(record: ServiceRecord) -> str:
    """gone, stopped or runs."""
    if not record.runs():
        return "gone"
    return "stopped" if psutil.Process(record.pid).status() == psutil.STATUS_STOPPED else "runs"


def test_a_kill_kills_all_of_its_targets_and_nobody_else(sleepers: dict[str, ServiceRecord]) -> None:
    with Nemesis(Arena(lambda: suite(sleepers), {})) as nemesis:
        killed = nemesis.begin(fault("kill", "sender"))
        assert killed.victims == (sleepers["sender"].pid,)
        eventually(lambda: status(sleepers["sender"]) == "gone")
        assert status(sleepers["receiver"]) == "runs"
        both = nemesis.begin(fault("kill", "sender", "receiver"))
        assert both.victims == (sleepers["receiver"].pid,)
        eventually(lambda: status(sleepers["receiver"]) == "gone")


def test_a_fault_whose_victim_is_not_there_is_missed_and_says_so(sleepers: dict[str, ServiceRecord]) -> None:
    with Nemesis(Arena(lambda: suite(sleepers), {})) as nemesis:
        assert nemesis.begin(fault("kill", "kafka")).missed == "no kafka runs just now"
        assert "python-worker" in nemesis.begin(fault("pause", "python-worker")).missed
        assert "does not answer" in nemesis.begin(fault("wipe")).missed
        assert "does not answer" in nemesis.begin(fault("starve")).missed
        assert "no sink" in nemesis.begin(fault("stall")).missed
        assert "no source" in nemesis.begin(fault("crowd")).missed
        assert "movable clock" in nemesis.begin(fault("clock")).missed
        assert "file system of its own" in nemesis.begin(fault("fill")).missed


def test_a_pause_stops_and_goes_on_also_when_the_run_is_left_in_the_middle(
    sleepers: dict[str, ServiceRecord],
) -> None:
    with Nemesis(Arena(lambda: suite(sleepers), {})) as nemesis:
        first = nemesis.begin(fault("pause", "sender", for_s=9.0))
        nemesis.begin(fault("pause", "receiver", for_s=9.0, number=2))
        eventually(lambda: status(sleepers["sender"]) == status(sleepers["receiver"]) == "stopped")
        before_s = time.time()
        nemesis.end(first)
        assert before_s <= first.ended_s <= time.time()
        eventually(lambda: status(sleepers["sender"]) == "runs")
        assert status(sleepers["receiver"]) == "stopped"
    eventually(lambda: status(sleepers["receiver"]) == "runs")


def test_a_number_that_another_process_has_by_now_is_nobody(sleepers: dict[str, ServiceRecord]) -> None:
    other = sleepers["sender"].model_copy(update={"started_s": sleepers["sender"].started_s - 60})
    assert processes(SENDER.name, {"sender": other}) == []
    assert [each.pid for each in processes(SENDER.name, sleepers)] == [sleepers["sender"].pid]
    assert all(
        processes(target, sleepers) == []
        for target in (OtherProcess.JVM, OtherProcess.EXECUTOR, OtherProcess.WORKER)
    )


def test_a_wiped_redis_holds_nothing(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis") as server, RedisStore(server.url, "app") as store:
        live_metrics = LiveMetrics(store)
        live_metrics.write_partition(STAGE, {"offset": 1})
        with Nemesis(Arena(lambda: suite({}, server.url), {})) as nemesis:
            assert nemesis.begin(fault("wipe")).missed == ""
        assert live_metrics.partitions() == {}


def test_a_starved_redis_refuses_writes_until_the_last_such_fault_is_over(tmp_path: Path) -> None:
    with RedisServer(tmp_path / "redis") as server, RedisStore(server.url, "app") as store:
        live_metrics = LiveMetrics(store)
        with Nemesis(Arena(lambda: suite({}, server.url), {})) as nemesis:
            first = nemesis.begin(fault("starve", for_s=9.0))
            second = nemesis.begin(fault("starve", for_s=9.0, number=2))
            with pytest.raises(StoreError, match="is full; raise its maxmemory"):
                live_metrics.write_partition(STAGE, {"offset": 1})
            assert live_metrics.partitions() == {}
            nemesis.end(first)
            with pytest.raises(StoreError, match="is full"):
                live_metrics.write_partition(STAGE, {"offset": 1})
            nemesis.end(second)
            live_metrics.write_partition(STAGE, {"offset": 1})
            nemesis.begin(fault("starve", for_s=9.0, number=3))
        live_metrics.write_partition(STAGE, {"offset": 2})
        assert live_metrics.partitions() == {("stage", 0): {"offset": "2"}}


def test_cuts_and_delays_are_those_of_the_link_and_end_with_the_run() -> None:
    with ExitStack() as stack:
        one, two, behind = (stack.enter_context(Proxy("127.0.0.1:1")) for _ in range(3))
        links = {Link.INGEST: [one, two], Link.SUBSCRIBE: [behind]}
        with Nemesis(Arena(lambda: suite({}), links)) as nemesis:
            cut = nemesis.begin(fault("cut", "ingest", for_s=1))
            nemesis.begin(fault("delay", "subscribe", for_s=1, by=50))
            assert (one.refuses, two.refuses, behind.refuses) == (True, True, False)
            assert (one.delay_s, behind.delay_s) == (0, 0.05)
            nemesis.end(cut)
            assert not one.refuses
            assert not two.refuses
        assert behind.delay_s == 0


def test_a_clock_jump_meets_the_sender_that_it_names_and_no_other(tmp_path: Path) -> None:
    clocks = {name: MovableClock(tmp_path / name) for name in ("sender", "sender-2")}

    def offsets() -> list[float]:
        return [
            int.from_bytes((tmp_path / name).read_bytes(), "little", signed=True) / 1e9 for name in clocks
        ]

    with Nemesis(Arena(lambda: suite({}), {}, clocks=clocks)) as nemesis:
        jump = nemesis.begin(fault("clock", "sender-2", for_s=9.0, by=-108_000.0))
        assert (jump.missed, offsets()) == ("", [0.0, -108_000.0])
        nemesis.end(jump)
        assert offsets() == [0.0, 0.0]
        nemesis.begin(fault("clock", "sender", for_s=9.0, by=5.0, number=2))
        assert offsets() == [5.0, 0.0]
        assert (
            nemesis.begin(fault("clock", "sender-3", number=3)).missed
            == "sender-3 was started without a movable clock"
        )
    assert offsets() == [0.0, 0.0]


def test_of_several_senders_each_is_behind_the_name_of_the_service(
    sleepers: dict[str, ServiceRecord],
) -> None:
    services = {"sender": sleepers["sender"], "sender-2": sleepers["receiver"]}
    assert {each.pid for each in processes(SENDER.name, services)} == {each.pid for each in services.values()}


def test_of_two_processors_that_were_started_at_the_same_moment_one_is_active(
    sleepers: dict[str, ServiceRecord],
) -> None:
    """After both were killed: the kernel counts starts in ticks of 10 ms."""
    first, second = sleepers.values()
    same = second.model_copy(update={"started_s": first.started_s})
    (active,) = processes(PROCESSOR.name, {PROCESSOR.name: first, SECOND: same})
    assert active.pid == first.pid


def test_the_clock_of_a_process_jumps_while_it_runs_and_durations_stay_right(tmp_path: Path) -> None:
    clock = MovableClock(tmp_path / "clock")
    program = "import time\nwhile True: input(); print(time.time(), time.time_ns() / 1e9, time.monotonic(), flush=True)"
    with subprocess.Popen(
        [sys.executable, "-c", program],
        env={**os.environ, **clock.environment},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        for offset_s in (0.0, -3600.0, 86_400.5):
            clock.set(offset_s)
            process.stdin.write("\n")
            process.stdin.flush()
            seconds, nanoseconds, steady = map(float, process.stdout.readline().split())
            assert seconds - time.time() == pytest.approx(offset_s, abs=5)
            assert nanoseconds - time.time() == pytest.approx(offset_s, abs=5)
            assert steady == pytest.approx(time.monotonic(), abs=5)
        process.kill()


def test_a_small_disk_is_full_when_it_is_filled_or_says_why_there_is_none() -> None:
    why = disk.why_not()
    if why is not None:
        assert "root" in why or "Linux" in why
        with pytest.raises(LocalError, match="cannot mount a file system of 16 MB"):
            SmallDisk(16).__enter__()
        return
    with SmallDisk(16) as small:
        small.suite.mkdir()
        small.fill()
        with pytest.raises(OSError, match="No space left"):
            (small.suite / "more").write_bytes(b"x" * 4096)
        small.free()
        (small.suite / "more").write_bytes(b"x" * 4096)
        folder = small.suite.parent
    assert not folder.exists()
