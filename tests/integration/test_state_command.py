"""`bettong state` against a real Kafka and Redis."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq
import pytest

from bettong.application.plan import Stage, plan
from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.edges.application_file import load
from bettong.edges.kafka_log import LogAdmin, LogWriter
from bettong.edges.redis_store import LiveMetrics, RedisSnapshots, RedisStore
from bettong.edges.snapshot_stores import local_states, log_id
from bettong.errors import LocalError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, encode
from bettong.identifiers import Origin, PartitionId, SequenceNumber, TopicPartition
from bettong.local.broker import KafkaBroker
from bettong.local.locations import found_locations
from bettong.local.redis_server import RedisServer
from bettong.routing import partition_of
from bettong.topics import stage_topic
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import program
from bettong_console.performing import reset
from bettong_console.question import ResetQuestion
from tests.integration.log_parts import FRAME_BYTES_MAX, delete_below
from tests.samples.snapshots import whole

PARTITIONS = 3
PROGRAM = """
from dataclasses import dataclass
from typing import Annotated
import bettong

@dataclass
class Payment:
    account: Annotated[str, bettong.Width(8)]
    amount: int

@dataclass
class Account:
    total: int = 0

@bettong.compiled
def add(payment: Payment, account: Account) -> Payment:
    account.total += payment.amount
    return Payment(payment.account, account.total)

app = bettong.Application({name!r})
app.source("payments", schema=Payment, key="account").stateful(add, state=Account).sink("totals")
"""
ACCOUNTS = {"ann": 5, "bob": 7, "eve": 9, "joe": -1}


class World:
    """An application with a record for each account in the log, snapshots of it, and the command."""

    def __init__(
        self, name: str, folder: Path, kafka: KafkaBroker, redis: str, reported: Callable[[], str]
    ) -> None:
        self.name, self.kafka, self.redis, self.folder = name, kafka, redis, folder
        self._reported = reported
        self.file = folder / "app.py"
        self.file.write_text(PROGRAM.replace("{name!r}", repr(name)))
        self.topic = stage_topic(name, "payments")
        with LogAdmin(kafka.bootstrap) as admin:
            admin.create_topics(
                [self.topic], partitions=PARTITIONS, replication=1, frame_bytes_max=FRAME_BYTES_MAX
            )
        with LogWriter(kafka.bootstrap, frame_bytes_max=FRAME_BYTES_MAX, buffer_bytes_max=1 << 24) as log:
            for partition, values in self.values().items():
                for value in values:
                    log.append(TopicPartition(self.topic, partition), value, lambda _: None)
            log.flush(30)

    @property
    def stage(self) -> Stage:
        return plan(load(str(self.file))).stage("payments")

    def values(self) -> dict[int, list[bytes]]:
        """A frame for each account, by partition."""
        (entry,) = self.stage.inputs
        found: dict[int, list[bytes]] = {partition: [] for partition in range(PARTITIONS)}
        for number, (account, amount) in enumerate(ACCOUNTS.items()):
            columns = Columns.of_messages(entry.schema, [entry.schema.message(account, amount)])
            frame = Frame(
                origin=Origin(f"payments/{account}"),
                sequence=SequenceNumber(number + 1),
                previous=SequenceNumber(0),
                count=1,
                schema=entry.schema.fingerprint,
                columns=columns.payload(),
            )
            found[partition_of(account, PARTITIONS)].append(encode(frame))
        return found

    def snapshots(self, *, compiled: bool) -> None:
        """Saves one a partition that has records."""
        ready = program(self.stage, compiled=compiled)
        with RedisStore(self.redis, self.name) as store:
            for partition, values in self.values().items():
                worker = PartitionWorker(ready, Assignment(self.name, partition, PARTITIONS, FRAME_BYTES_MAX))
                for offset, value in enumerate(values):
                    worker.fold(offset, value)
                if values:
                    RedisSnapshots(store).save(
                        PartitionId("payments", partition), whole(len(values)), worker.snapshot()
                    )

    def reset_from_console(self, *, dry_run: bool) -> dict[str, Any]:
        """As the console's process for it does."""
        where = found_locations(
            str(self.file), self.name, self.folder, kafka=self.kafka.bootstrap, redis=self.redis
        )
        return reset(ResetQuestion(dry_run), plan(load(str(self.file))), where)

    def run(self, command: str, *arguments: str) -> tuple[int, str]:
        addresses = ["--kafka", self.kafka.bootstrap, "--redis", self.redis]
        line = ["state", command, str(self.file), *arguments, *addresses]
        code = end_well(command_line, line, name="bettong")
        return code, self._reported()


@pytest.fixture
def world(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    unique_name: Callable[..., str],
    tmp_path: Path,
    reported: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> World:
    monkeypatch.setenv("BETTONG_STATE_DIR", str(tmp_path / "shared"))

    return World(unique_name("state"), tmp_path, kafka, redis_server.url, reported)


@pytest.mark.parametrize("compiled", [True, False], ids=["compiled", "python"])
def test_states_are_listed_shown_and_exported(
    world: World, monkeypatch: pytest.MonkeyPatch, *, compiled: bool
) -> None:
    monkeypatch.setenv("BETTONG_COMPILED", str(compiled).lower())
    world.snapshots(compiled=compiled)
    code, text = world.run("list", "--json")
    assert code == 0, text
    rows = [json.loads(line) for line in text.splitlines()]
    assert [(each["partition"], each["log_end"]) for each in rows] == [
        (partition, len(values)) for partition, values in world.values().items()
    ]
    assert sum(each["keys"].get("add", 0) for each in rows) == len(ACCOUNTS)
    assert all((each["snapshot_offset"] or 0) == each["log_end"] for each in rows)
    code, text = world.run("list")
    assert "snapshot at" in text
    assert "add " in text

    for account, total in ACCOUNTS.items():
        code, text = world.run("get", account)
        found = json.loads(text)
        assert (code, found["computation"], found["key"], found["state"]) == (
            0,
            "add",
            account,
            {"total": total},
        )

    code, text = world.run("export", "-")
    lines = [json.loads(line) for line in text.splitlines()]
    assert {each["key"]: each["state"]["total"] for each in lines} == ACCOUNTS
    for name in ("states.jsonl", "states.parquet"):
        code, text = world.run("export", str(world.folder / name))
        assert (code, text) == (0, f"4 states in {world.folder / name}\n")
    assert [json.loads(line) for line in (world.folder / "states.jsonl").read_text().splitlines()] == lines
    rows = pq.read_table(world.folder / "states.parquet").to_pylist()
    assert [each | {"state": json.loads(each["state"])} for each in rows] == lines
    assert not list(world.folder.glob("*.unfinished"))


def test_what_is_not_there_and_what_is_wrong_says_so(world: World) -> None:
    code, text = world.run("get", "ann")
    assert code == 1
    assert "key ann has no state in stage payments" in text
    world.snapshots(compiled=True)
    assert world.run("get", "zoe")[0] == 1
    assert world.run("get", "a name too long")[0] == 2
    assert "does not fit 'account'" in world.run("get", "a name too long")[1]
    assert world.run("get", "ann", "--stage", "other")[0] == 2
    assert world.run("export", "states.txt")[0] == 2
    code, text = world.run("export", "/nowhere/states.jsonl")
    assert code == 1
    assert "/nowhere/states.jsonl cannot be written" in text


def test_a_damaged_snapshot_is_skipped_for_the_one_before_it(world: World) -> None:
    world.snapshots(compiled=True)
    partition = partition_of("ann", PARTITIONS)
    with RedisStore(world.redis, world.name) as store:
        RedisSnapshots(store).save(PartitionId("payments", partition), whole(99), b"garbage")
        assert json.loads(world.run("get", "ann")[1])["state"] == {"total": 5}
        RedisSnapshots(store).save(PartitionId("payments", partition), whole(100), b"garbage")
    code, text = world.run("get", "ann")
    assert code == 1
    assert "snapshot of" in text


def test_reset_deletes_snapshots_and_only_when_nothing_can_go_wrong(world: World) -> None:
    world.snapshots(compiled=True)
    shared = local_states(world.folder / "shared" / f"{world.name}-0123456789ab", log_id({"topic": "its id"}))
    shared.save(PartitionId("payments", 0), whole(1), b"a state")
    with RedisStore(world.redis, world.name) as store:
        offsets = {p: RedisSnapshots(store).increments(PartitionId("payments", p)) for p in range(PARTITIONS)}
        code, text = world.run("reset")
        assert (code, text) == (
            0,
            f"would delete all snapshots of {world.name}; the next start folds 4 records\n",
        )
        LiveMetrics(store).write_live("processor", {"state": "running", "service": "processor"}, 60.0)
        code, text = world.run("reset", "--yes")
        assert code == 6
        assert "processor of" in text
        for dry_run in (True, False):
            with pytest.raises(LocalError, match=f"processor of {world.name} runs"):
                world.reset_from_console(dry_run=dry_run)
        LiveMetrics(store).write_live("processor", {"state": "running", "service": "processor"}, 0.001)
        assert {
            p: RedisSnapshots(store).increments(PartitionId("payments", p)) for p in range(PARTITIONS)
        } == offsets

        LiveMetrics(store).write_partition(PartitionId("payments", 0), {"offset": 2, "due": ""})
        code, text = world.run("reset", "--yes")
        assert (code, text) == (
            0,
            f"snapshots of {world.name} deleted; the next start folds 4 records again\n",
        )
        assert LiveMetrics(store).partitions() == {}, "status counts all records as waiting"
        assert all(
            RedisSnapshots(store).increments(PartitionId("payments", p)) == [] for p in range(PARTITIONS)
        )
        assert shared.increments(PartitionId("payments", 0)) == []

        world.snapshots(compiled=True)
        assert world.reset_from_console(dry_run=True)["records"] == 4
        assert any(RedisSnapshots(store).increments(PartitionId("payments", p)) for p in range(PARTITIONS))
        assert world.reset_from_console(dry_run=False)["texts"][0] == text.strip()
        assert not any(
            RedisSnapshots(store).increments(PartitionId("payments", p)) for p in range(PARTITIONS)
        )

        world.snapshots(compiled=True)
        partition = partition_of("ann", PARTITIONS)
        delete_below(world.kafka, world.topic, partition, 1)
        code, text = world.run("reset", "--yes")
        assert code == 9
        assert f"the beginning of the log of payments/{partition} was deleted" in text
        assert RedisSnapshots(store).increments(PartitionId("payments", partition)) != []
