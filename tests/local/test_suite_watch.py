"""The suite of a folder, asked again and again: it may end, and another one begin."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import LocalError
from bettong.local.addresses import free_ports
from bettong.local.inspecting import SuiteWatch
from bettong.local.record import ProcessRecord, ServiceRecord, SuiteRecord, forget
from bettong.local.redis_server import RedisServer

FRAME_BYTES_MAX = 1_000_000


def record(name: str, redis: str, *, owner: ProcessRecord | None = None) -> SuiteRecord:
    own = ProcessRecord.own()
    sender = ServiceRecord(pid=own.pid, started_s=own.started_s, log=Path("sender.log"))
    return SuiteRecord(
        application="app.py",
        name=name,
        schedule="resident",
        partitions=1,
        compiled=True,
        directory=Path(),
        results=None,
        kafka=f"127.0.0.1:{free_ports(1)[0]}",
        redis=redis,
        snapshots="redis",
        addresses={},
        ready=True,
        owner=owner or own,
        services={"sender": sender},
    )


def write_sender(redis: str, name: str, messages: int) -> None:
    with RedisStore(redis, name) as store:
        metrics: dict[str, str | int | float] = {
            "service": "sender",
            "state": "running",
            "since": "4000000000",
            "messages": messages,
        }
        LiveMetrics(store).write_live("sender", metrics, 60)


def test_it_sees_what_runs_in_its_folder_until_that_ends_and_then_the_next_one(
    redis_server: RedisServer, unique_name: Callable[..., str], tmp_path: Path
) -> None:
    first, second = unique_name("first"), unique_name("second")
    write_sender(redis_server.url, first, 7)
    write_sender(redis_server.url, second, 9)
    with SuiteWatch(tmp_path, frame_bytes_max=FRAME_BYTES_MAX) as watch:
        with pytest.raises(LocalError, match="nothing runs in"):
            watch.inspect()
        record(first, redis_server.url).write(tmp_path)
        found = watch.inspect()
        assert (found.application, found.overview.messages) == (first, 7)
        assert [(row.name, row.state) for row in found.services] == [("sender", "running")]
        assert found.away == ("kafka",)
        record(second, redis_server.url).write(tmp_path)
        assert (watch.inspect().application, watch.inspect().overview.messages) == (second, 9)
        forget(tmp_path)
        with pytest.raises(LocalError, match="nothing runs in"):
            watch.reasons(0.1)


def test_a_suite_of_the_same_name_at_other_addresses_is_another_one(
    redis_server: RedisServer, unique_name: Callable[..., str], tmp_path: Path
) -> None:
    name = unique_name("same")
    write_sender(redis_server.url, name, 7)
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        owner = ProcessRecord(pid=other.pid, started_s=psutil.Process(other.pid).create_time())
        with SuiteWatch(tmp_path, frame_bytes_max=FRAME_BYTES_MAX) as watch:
            record(name, f"redis://127.0.0.1:{free_ports(1)[0]}/0").write(tmp_path)
            assert watch.inspect().away == ("redis", "kafka")
            assert [row.state for row in watch.inspect().services] == ["unknown"]
            record(name, redis_server.url, owner=owner).write(tmp_path)
            assert watch.inspect().overview.messages == 7
        other.communicate(b"\n")
