"""States kept in S3: a partition goes on from there, and the commands read them there. All real; no Redis needed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.edges.redis_store import RedisStore
from bettong.edges.snapshot_stores import snapshot_store
from bettong.identifiers import PartitionId
from bettong.local.broker import KafkaBroker
from bettong_processor.micro_batch.offsets import snapshot_offsets
from bettong_processor.micro_batch.uploads import Stores
from tests.integration.test_processor_partitions import World
from tests.servers.s3 import BUCKET, S3Server

URL = f"s3://{BUCKET}/states"
# Nothing listens there.
REDIS = "redis://127.0.0.1:1/0"


@pytest.fixture
def world(kafka: KafkaBroker, s3_server: S3Server, tmp_path: Path, unique_name: Callable[..., str]) -> World:
    name = unique_name("objects")
    world = World(name, kafka.bootstrap, REDIS, tmp_path)
    durable = snapshot_store(URL, name, RedisStore(REDIS, name))
    world.stores = Stores(local=world.stores.local, durable=durable)
    return world


def test_a_partition_is_restored_from_s3_and_the_log_folded_on(world: World) -> None:
    process = world.process()
    world.batch(process, 0, 10)
    assert world.durable() == []
    world.batch(process, 10, 20)
    assert world.durable() == [10]
    world.now_s += 2
    world.batch(process, 20, 25)
    assert world.durable() == [10, 20]
    assert snapshot_offsets(world.stores.durable, world.programs.plan, 1) == {(world.topic, 0): 20}
    world.stores.local.clear()
    assert world.batch(world.process(), 25, 30).snapshot() == world.straight(30)


def test_a_damaged_object_is_skipped_for_the_one_before_it(world: World, s3_server: S3Server) -> None:
    process = world.process()
    for first in (0, 10, 20):
        world.batch(process, first, first + 10)
        assert world.uploads.wait_until_saved(10)
        world.now_s += 2
    assert world.durable() == [10, 20]
    newest = world.stores.durable.increments(PartitionId(world.stage.name, 0))[-1]
    folder = f"states/{world.programs.plan.application}/{world.stage.name}-0"
    for damaged in (b"garbage", b""):
        s3_server.put(f"{folder}/{newest.name}", damaged)
        world.stores.local.clear()
        assert world.batch(world.process(), 20, 30).snapshot() == world.straight(30)


def test_the_commands_read_states_from_s3(
    world: World,
    kafka: KafkaBroker,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    process = world.process()
    world.batch(process, 0, 10)
    world.batch(process, 10, 20)
    assert world.durable() == [10]
    file = tmp_path / "sums.py"
    file.write_text(
        "from tests.integration.test_processor_partitions import application\n"
        f"app = application({world.programs.plan.application!r})\n"
    )
    monkeypatch.setenv("BETTONG_SNAPSHOTS", f"{URL}/")
    monkeypatch.setenv("BETTONG_STATE_DIR", str(tmp_path / "shared"))

    def reported(*line: str) -> str:
        addresses = ["--kafka", kafka.bootstrap, "--redis", REDIS, "--dir", str(tmp_path / "no suite")]
        code = end_well(command_line, [*line, *addresses], name="bettong")
        captured = capsys.readouterr()
        assert code == 0, captured
        return captured.out

    found = json.loads(reported("state", "get", str(file), "m"))
    assert (found["offset"], found["state"]) == (10, {"total": sum(range(10))})
    events = reported("replay", str(file), "--key", "m", "--from-snapshot", "--until", "11", "--json")
    (step,) = json.loads(events)["states"]
    assert (step["before"], step["after"]) == ({"total": sum(range(10))}, {"total": sum(range(11))})
