"""`bettong replay` against a real Kafka and Redis: one key's history, from the log or from a snapshot."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from bettong.application.plan import Stage, plan
from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.edges.application_file import load
from bettong.edges.kafka_log import LogAdmin, LogWriter
from bettong.edges.redis_store import RedisSnapshots, RedisStore
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, encode
from bettong.identifiers import Origin, PartitionId, SequenceNumber, TopicPartition
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.routing import partition_of
from bettong.topics import stage_topic
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import program
from tests.integration.log_parts import FRAME_BYTES_MAX, NOBODY, delete_below
from tests.samples.snapshots import whole

PARTITIONS = 4
ANN = partition_of("ann", PARTITIONS)

PROGRAM = """
from dataclasses import dataclass
import bettong

@dataclass
class Payment:
    account: str
    amount: int

@dataclass
class Account:
    total: int = 0

def add(payment: Payment, account: Account) -> Payment:
    account.total += payment.amount
    if payment.amount == 13:
        raise ValueError("thirteen")
    return Payment(payment.account, account.total)

app = bettong.Application({name!r})
totals = app.source("payments", schema=Payment, key="account").stateful(add, state=Account, on_error={on_error!r})
totals.sink("totals")
"""
MORE = """
def same(payment: Payment) -> Payment:
    return payment

totals.key_by("amount", name="by-amount").map(same).sink("amounts")
app.source("keyless", schema=Payment).sink("all")
"""


class World:
    """An application, its log, its snapshots, and the command."""

    def __init__(
        self, name: str, folder: Path, kafka: KafkaBroker, redis: str, reported: Callable[[], str]
    ) -> None:
        self.name, self.kafka, self.redis = name, kafka, redis
        self._folder, self._reported = folder, reported
        self.write()
        self.topic = stage_topic(name, "payments")
        with LogAdmin(kafka.bootstrap) as admin:
            admin.create_topics(
                [self.topic], partitions=PARTITIONS, replication=1, frame_bytes_max=FRAME_BYTES_MAX
            )

    def write(self, *, on_error: str = "dead-letter", more: str = "") -> None:
        """The application's file; each another one, for a file is loaded once a process."""
        self.file = self._folder / f"app-{len(list(self._folder.iterdir()))}.py"
        self.file.write_text(
            PROGRAM.replace("{name!r}", repr(self.name)).replace("{on_error!r}", repr(on_error)) + more
        )

    @property
    def stage(self) -> Stage:
        return plan(load(str(self.file))).stage("payments")

    def value(self, number: int, account: str, amount: int) -> bytes:
        """Frame `number` of one client."""
        (entry,) = self.stage.inputs
        columns = Columns.of_messages(entry.schema, [entry.schema.message(account, amount)])
        return encode(
            Frame(
                origin=Origin("payments/client"),
                sequence=SequenceNumber(number + 1),
                previous=SequenceNumber(number),
                count=1,
                schema=entry.schema.fingerprint,
                ingest_ns=number + 1,
                columns=columns.payload(),
            )
        )

    def log(self, *payments: tuple[str, int]) -> list[bytes]:
        """Appends to Ann's partition, a frame each."""
        values = [self.value(number, account, amount) for number, (account, amount) in enumerate(payments)]
        with LogWriter(
            self.kafka.bootstrap, frame_bytes_max=FRAME_BYTES_MAX, buffer_bytes_max=1 << 24
        ) as log:
            for value in values:
                log.append(TopicPartition(self.topic, ANN), value, lambda _: None)
            log.flush(30)
        return values

    def snapshot(self, values: list[bytes], *offsets: int) -> None:
        """Saves those of a worker that folds the values."""
        worker = PartitionWorker(
            program(self.stage, compiled=False), Assignment(self.name, ANN, PARTITIONS, FRAME_BYTES_MAX)
        )
        with RedisStore(self.redis, self.name) as store:
            for offset, value in enumerate(values):
                if offset in offsets:
                    RedisSnapshots(store).save(PartitionId("payments", ANN), whole(offset), worker.snapshot())
                worker.fold(offset, value)

    def run(self, *arguments: str, kafka: str | None = None) -> tuple[int, str]:
        """The command: its exit code and what it printed."""
        addresses = ["--kafka", kafka or self.kafka.bootstrap, "--redis", self.redis]
        code = end_well(command_line, ["replay", str(self.file), *arguments, *addresses], name="bettong")
        return code, self._reported()

    def events(self, *arguments: str) -> list[dict[str, Any]]:
        code, text = self.run("--json", *arguments)
        assert code == 0, text
        return [json.loads(line) for line in text.splitlines()]


@pytest.fixture
def world(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    unique_name: Callable[..., str],
    tmp_path: Path,
    reported: Callable[[], str],
    monkeypatch: pytest.MonkeyPatch,
) -> World:
    monkeypatch.setenv("COLUMNS", "160")

    return World(unique_name("replay"), tmp_path, kafka, redis_server.url, reported)


def test_a_keys_history_is_shown_from_the_beginning(world: World) -> None:
    world.log(("ann", 5), ("bob", 1), ("ann", 13), ("ann", 2))
    events = world.events("--key", "ann")
    assert [(each["offset"], each["sequence"], each["message"]["amount"]) for each in events] == [
        (0, 1, 5),
        (2, 3, 13),
        (3, 4, 2),
    ]
    states = [(step["before"], step["after"]) for each in events for step in each["states"]]
    assert states == [
        (None, {"total": 5}),
        ({"total": 5}, {"total": 18}),
        ({"total": 18}, {"total": 20}),
    ]
    assert [each["outputs"] for each in events] == [
        [{"to": "totals", "message": {"account": "ann", "amount": 5}}],
        [],
        [{"to": "totals", "message": {"account": "ann", "amount": 20}}],
    ]
    assert events[1]["failures"] == [
        {"computation": "add", "on_error": "dead-letter", "reason": "ValueError: thirteen"}
    ]
    code, text = world.run("--key", "ann")
    assert code == 0
    for reported in (f"partition {ANN} of stage payments", 'add: {"total": 5} -> {"total": 18}', "thirteen"):
        assert reported in text


def test_until_and_last_bound_what_is_reported(world: World) -> None:
    world.log(*[("ann", number) for number in range(10)])
    assert [each["offset"] for each in world.events("--key", "ann", "--until", "4")] == [0, 1, 2, 3]
    assert [each["offset"] for each in world.events("--key", "ann", "--last", "2")] == [8, 9]
    assert world.events("--key", "ann", "--until", "0") == []
    assert world.events("--key", "bob") == []
    code, text = world.run("--key", "ann", "--until", "11")
    assert code == 2
    assert f"the log of partition {ANN} of stage payments, where the key is, ends at 10" in text


def test_from_a_snapshot_the_states_are_the_same(world: World) -> None:
    values = world.log(*[("ann", number) for number in range(10)])
    world.snapshot(values, 3, 6)
    straight = world.events("--key", "ann")
    assert world.events("--key", "ann", "--from-snapshot") == straight[6:]
    assert world.events("--key", "ann", "--from-snapshot", "--until", "5") == straight[3:5]
    assert world.events("--key", "ann", "--from-snapshot", "--until", "2") == straight[:2]


def test_a_log_that_was_trimmed_is_folded_from_the_oldest_snapshot_that_reaches(world: World) -> None:
    values = world.log(*[("ann", number) for number in range(10)])
    straight = world.events("--key", "ann")
    world.snapshot(values, 4, 6)
    delete_below(world.kafka, world.topic, ANN, 4)
    assert world.events("--key", "ann") == straight[4:]
    delete_below(world.kafka, world.topic, ANN, 5)
    assert world.events("--key", "ann") == straight[6:]
    delete_below(world.kafka, world.topic, ANN, 7)
    code, text = world.run("--key", "ann")
    assert code == 9
    assert "its log begins at 7, and no snapshot lies between there and 10 (there are: 4, 6)" in text


def test_where_the_processor_stopped_the_history_ends_and_says_why(world: World) -> None:
    world.log(("ann", 5), ("bob", 13), ("ann", 2))
    world.write(on_error="stop")
    code, text = world.run("--key", "ann")
    assert code == 0
    assert "the fold stops here: 'add' (on_error=\"stop\") cannot process a message" in text
    code, text = world.run("--key", "ann", "--json")
    assert json.loads(text.splitlines()[0])["offset"] == 0
    assert "offset 1, origin payments/client" in text.splitlines()[1]


def test_wrong_stages_keys_and_offsets_say_what_to_do(world: World) -> None:
    world.write(more=MORE)
    for arguments, code, reported in (
        (["--key", "ann"], 2, "several stages, give --stage: payments, by-amount, keyless"),
        (["--key", "ann", "--stage", "nowhere"], 2, "--stage nowhere: there is no such stage, only payments"),
        (["--key", "ann", "--stage", "by-amount"], 2, "by-amount: 'ann' is no whole number"),
        (["--key", "ann", "--stage", "keyless"], 2, "stage keyless has no keys"),
        (["--key", "5", "--stage", "by-amount"], 5, "does not exist"),
        (["--key", "ann", "--stage", "payments", "--until", "-1"], 2, "--until"),
        (["--stage", "payments"], 2, "--key"),
    ):
        found, text = world.run(*arguments)
        assert found == code, text
        assert reported in text
    code, text = world.run("--key", "ann", "--stage", "payments", kafka=NOBODY)
    assert code == 5
    assert "no answer from Kafka" in text


def test_a_damaged_snapshot_says_so(world: World) -> None:
    world.log(*[("ann", number) for number in range(4)])
    with RedisStore(world.redis, world.name) as store:
        RedisSnapshots(store).save(PartitionId("payments", ANN), whole(2), b"garbage")
    code, text = world.run("--key", "ann", "--from-snapshot")
    assert code == 1
    assert "snapshot of" in text
