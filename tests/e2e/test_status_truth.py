"""What `bettong status` says is true within 2 s: a table of (fault, state, reason, exit code) over one suite.

Everything is real: two processors (one stands by), Postgres, and a topic of another Kafka. Rows are in the order in
which they are tried; each is mended before the next, but for the last. Two more rows are in
tests/e2e/test_deadly.py, under both schedules: a message that kills its worker, and one that takes long; a lost frame
under micro-batch is in tests/e2e/test_lost_frame.py.
"""

import json
import os
import re
import signal
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Future
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

import psutil
import pytest

from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.client import Sender
from bettong.config.processor import Schedule
from bettong.edges.kafka_log import LogAdmin, LogWriter
from bettong.edges.redis_store import RedisStore
from bettong.errors import LogError, PoisonError
from bettong.frames.frame import Frame, FrameKind, encode
from bettong.identifiers import Origin, SequenceNumber, TopicPartition
from bettong.inspection.overview import STALLED_S_MIN
from bettong.local.broker import KafkaBroker
from bettong.local.options import Restarts, SuiteOptions
from bettong.local.readiness import await_running, exit_code, lines
from bettong.local.record import SuiteRecord
from bettong.local.suite import Suite
from bettong.topics import stage_topic
from tests.servers.postgres import PostgresServer
from tests.waiting import bound_s, eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(600)]

TRUE_S = 2.0
SILENT_S = 3.0  # a service is silent when it has not written its record for so long
UNHELD_S = 3.0  # a partition moves from slot to slot within less
GAP_ALARM_S = 1
MENDED_S = 120.0

APPLICATION = """
import os, time
from dataclasses import dataclass
import bettong

@dataclass
class Note:
    text: str

@dataclass
class Seen:
    count: int = 0

def see(note: Note, seen: Seen) -> Note:
    while os.path.exists({stop!r}):
        time.sleep(0.05)
    if note.text == "poison":
        raise ValueError("no text")
    seen.count += 1
    return note

def read(row: bytes) -> Note:
    return Note(row.decode())

app = bettong.Application("truth")
trades = bettong.KafkaTopic({topic!r}, connection="there")
notes = app.source("notes", schema=Note, key="text", decoder=bettong.each(read), from_=trades)
notes.stateful(see, state=Seen, on_error="stop").sink("rows", to=bettong.Postgres("truth"))
"""


@dataclass
class World:
    """The suite, and what it needs outside."""

    suite: Suite
    postgres: PostgresServer
    kafka: KafkaBroker
    topic: str
    stop: Path
    frozen: list[int] = field(default_factory=list)

    def pid(self, service: str) -> int:
        return self.suite.record.services[service].pid

    def freeze(self, *services: str) -> None:
        for service in services:
            os.killpg(self.pid(service), signal.SIGSTOP)
            self.frozen.append(self.pid(service))

    def thaw(self) -> None:
        while self.frozen:
            os.killpg(self.frozen.pop(), signal.SIGCONT)

    def kill(self, service: str) -> None:
        os.kill(self.pid(service), signal.SIGKILL)

    def feed(self, text: str = "a") -> None:
        with Sender(self.suite.record.sender, "notes") as sender:
            sender.send_columns({"text": [text]})
            sender.flush(30)

    def leader(self) -> str:
        with RedisStore(self.suite.record.redis_connection, "truth") as store:
            found = store.ask("asking who leads", lambda client: client.get(store.key("lead")))
            return str(found.decode()).partition("/")[0]

    def lose_tasks(self) -> None:
        """Another task seems to have taken each slot's place: each of ours ends by itself at once."""
        with RedisStore(self.suite.record.redis_connection, "truth") as store:
            slot = store.key("resident", "0")
            store.ask("superseding", lambda client: client.set(slot, 2**53, px=8000))

    def append(self, frame: Frame) -> None:
        append(self.suite.record, frame)

    def make_table(self) -> None:
        self.postgres.run("CREATE TABLE truth (text text NOT NULL)")

    def make_topic(self) -> None:
        with LogAdmin(self.kafka.bootstrap) as admin:
            admin.create_topics([self.topic], partitions=1, replication=1, frame_bytes_max=1_000_000)


def append(record: SuiteRecord, frame: Frame) -> None:
    """To the log of the stage, beside its sender."""
    answer: Future[int | LogError] = Future()
    with LogWriter(record.kafka_connection, frame_bytes_max=1_000_000, buffer_bytes_max=1_000_000) as writer:
        writer.append(TopicPartition(stage_topic("truth", "notes"), 0), encode(frame), answer.set_result)
        assert isinstance(answer.result(30), int)


Act = Callable[[World], object]


@dataclass(frozen=True)
class Row:
    """A fault. `says`: what each must be found in a line of its own of the status, as a pattern."""

    name: str
    break_: Act
    says: tuple[str, ...]
    mend: Act
    code: int = 7
    observable_s: float = 0.0  # from the fault to when it differs from what is usual
    goes_on: bool = True  # once it is mended, all of it


def nothing(_: World) -> None: ...


def hold(world: World) -> None:
    world.stop.touch()
    world.feed()


def lose_postgres(world: World) -> None:
    world.postgres.kill()
    world.feed()


BEHIND_A_GAP = Frame(
    origin=Origin("notes/lost"),
    sequence=SequenceNumber(7),
    previous=SequenceNumber(6),
    rows=[b"a"],
    count=1,
)
FILLS_THE_GAP = Frame(
    origin=Origin("notes/lost"),
    sequence=SequenceNumber(7),
    previous=SequenceNumber(7),
    kind=FrameKind.OPEN,
)
GAP_SAYS = r"1 partitions wait for a lost frame.*notes/lost, frame 7: frame 6 did not come before it"


TABLE = (
    Row(
        "the table of a sink is missing",
        nothing,
        (r"receiver +waiting .*sink rows.*there is no such table; create it: CREATE TABLE",),
        World.make_table,
        goes_on=False,  # the next row's fault is there, too
    ),
    Row(
        "the topic of a source is missing",
        nothing,
        (r"sender +waiting .*source notes: .*topic",),
        World.make_topic,
    ),
    Row(
        "another processor stands by",
        nothing,
        (r"processor(-2)? +standby .*processor.* is at work",),
        nothing,
        0,
    ),
    Row(
        "Kafka stands still",
        lambda world: world.freeze("kafka"),
        (r"kafka +silent .*127\.0\.0\.1", r"lag unknown"),
        World.thaw,
    ),
    Row(
        "Redis stands still",
        lambda world: world.freeze("redis"),
        (
            r"redis +silent .*Redis at .*127\.0\.0\.1",
            r"sender +unknown .*Redis, which has its state, is away",
        ),
        World.thaw,
    ),
    Row(
        "a service stands still",
        lambda world: world.freeze("receiver"),
        (r"receiver +silent .*has reported nothing for . s.*its last report: running",),
        World.thaw,
        observable_s=SILENT_S,
    ),
    Row(
        "the processor that leads is killed",
        lambda world: world.kill(world.leader()),
        (r"processor(-2)? +(down|starting) .*died: signal SIGKILL",),
        nothing,
    ),
    Row(
        "no slot has a task",
        World.lose_tasks,
        (r"processor(-2)? +waiting .*no (slot lives|slot holds|task)",),
        nothing,
        observable_s=UNHELD_S,
    ),
    Row(
        "a partition stands still",
        hold,
        (r"notes/. stands still at offset \d+ for \d+ s: \d+ records wait",),
        lambda world: world.stop.unlink(),
        observable_s=STALLED_S_MIN,
    ),
    Row(
        "a frame was lost, and its client does not send it again",
        lambda world: world.append(BEHIND_A_GAP),
        (GAP_SAYS,),
        lambda world: world.append(FILLS_THE_GAP),
        observable_s=GAP_ALARM_S,
    ),
    Row(
        "the destination of a sink is away",
        lose_postgres,
        (r"receiver +waiting .*sink rows, table truth of Postgres at .*: ",),
        lambda world: world.postgres.start(),
    ),
    Row(
        "a message stops the processor",
        lambda world: world.feed("poison"),
        (r"processor(-2)? +(stopping|down|given up) .*cannot process a message",),
        nothing,
        goes_on=False,
    ),
)


@pytest.fixture(scope="module")
def world(
    tmp_path_factory: pytest.TempPathFactory, kafka: KafkaBroker, unique_name: Callable[..., str]
) -> Iterator[World]:
    folder, topic = tmp_path_factory.mktemp("truth"), unique_name("trades")
    program, connections, stop = folder / "app.py", folder / "connections.json", folder / "stop"
    program.write_text(APPLICATION.format(stop=str(stop), topic=topic))
    with ExitStack() as stack:
        postgres = PostgresServer()
        stack.callback(postgres.close)
        postgres.start()
        connections.write_text(
            json.dumps({"there": {"bootstrap_servers": kafka.bootstrap}, "rows": {"url": postgres.url}})
        )
        options = SuiteOptions(
            application=str(program),
            partitions=2,
            schedule=Schedule.RESIDENT,
            standby=True,
            announce=folder / "here",
            settings={
                "connections": str(connections),
                "spark_master": "local[1]",
                "gap_alarm_s": str(GAP_ALARM_S),
            },
            restarts=Restarts(deaths_max=20),
        )
        suite = stack.enter_context(Suite(options))
        found = World(suite, postgres, kafka, topic, stop)
        stack.callback(found.thaw)
        yield found
        stop.unlink(missing_ok=True)


@pytest.fixture
def status(
    world: World, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Callable[[], tuple[int, str]]:
    """The command: its exit code, and what it prints."""
    monkeypatch.setenv("COLUMNS", "1000")
    announced = next(iter(world.suite._folders(world.suite.record)[1:]))

    def asked() -> tuple[int, str]:
        capsys.readouterr()
        code = end_well(command_line, ["status", "--dir", str(announced)], name="bettong")
        captured = capsys.readouterr()
        return code, captured.out + captured.err

    return asked


def test_up_says_what_does_not_go_on(world: World) -> None:
    """The first two rows are there from the start."""
    rows = await_running(lambda: world.suite.record)
    assert {row.name for row in rows} == {"receiver", "sender"}
    assert any("there is no such table" in text for text in lines(rows))
    assert exit_code(rows, 7) == 7


@pytest.mark.parametrize("processor", ["processor", "processor-2"])
def test_health_is_that_of_a_processor_at_work_also_for_one_that_stands_by(
    processor: str, world: World, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in psutil.Process(world.pid(processor)).environ().items():
        if name.startswith("BETTONG_"):
            monkeypatch.setenv(name, value)
    asked = ["health", "--running", "--memory", str(tmp_path / "memory.json")]
    eventually(lambda: end_well(command_line, asked, name="bettong") == 0, what=f"{processor} is well")


@pytest.mark.timely
@pytest.mark.parametrize("row", TABLE, ids=lambda row: row.name)
def test_status_is_true_within_two_seconds(
    row: Row, world: World, status: Callable[[], tuple[int, str]]
) -> None:
    if row.code == 0:
        eventually(lambda: status()[0] == 0, seconds=MENDED_S, what=lambda: f"all goes on: {status()}")
    row.break_(world)
    broken_s = untrue_s = time.monotonic()  # untrue_s: when the status was asked that was the last untrue one
    reported = (0, "")

    def reported_truly() -> bool:
        nonlocal untrue_s, reported
        asked_s = time.monotonic()
        reported = status()
        truly = reported[0] == row.code and all(
            re.search(each, reported[1], re.MULTILINE) for each in row.says
        )
        untrue_s = untrue_s if truly else asked_s
        return truly

    try:
        eventually(reported_truly, seconds=30, what=f"{row.says} and {row.code}")
    except AssertionError as error:
        raise AssertionError(f"{error}; it says {reported}") from None
    finally:
        row.mend(world)
    assert untrue_s - broken_s <= row.observable_s + bound_s(TRUE_S), reported
    if row is TABLE[-1]:
        dead = rf"processor(-2)? +given up +.*stopped for good: exit code {PoisonError.exit_code}: .*cannot process"
        eventually(lambda: re.search(dead, status()[1]), what=lambda: f"its process has ended: {status()}")
    if row.goes_on:
        eventually(lambda: status()[0] == 0, seconds=MENDED_S, what=lambda: f"all goes on again: {status()}")
