"""`bettong dead-letters` against a real sender and Kafka: listed, shown, and sent again, each once."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from bettong.application.plan import plan
from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.client.sender import Sender
from bettong.config.connection_settings import KafkaConnection
from bettong.edges.application_file import load
from bettong.edges.kafka_log import LogWriter
from bettong.errors import LogError
from bettong.frames.dead_letter_id import DeadLetterId
from bettong.identifiers import TopicPartition
from bettong.inspection.live.dead_letter_tail import DeadLetterTail
from bettong.inspection.live.resending import send_again
from bettong.inspection.retry import Resend
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.topics import dead_letter_topic, stage_topic
from bettong.v1.snapshot_pb2 import Counters
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import program
from tests.integration.log_parts import NOBODY, delete_below
from tests.samples.sender import PARTITIONS
from tests.servers.sender_process import FRAME_BYTES_MAX, SenderProcess, values_in
from tests.waiting import eventually

PROGRAM = """
from dataclasses import dataclass
from pathlib import Path
import bettong

MENDED = Path(__file__).with_name("mended")

@dataclass
class Number:
    name: str
    value: int

@dataclass
class Sum:
    total: int = 0

def read(row: bytes) -> Number:
    if row.startswith(b"!") and not MENDED.exists():
        raise ValueError("starts with !")
    name, _, value = row.decode().removeprefix("!").partition("=")
    return Number(name, int(value))

def add(number: Number, kept: Sum) -> Sum:
    if number.value < 0 and not MENDED.exists():
        raise ValueError("negative")
    kept.total += number.value
    return Sum(kept.total)

app = bettong.Application({name!r})
app.source("numbers", schema=Number, key="name", decoder=bettong.each(read)).stateful(add, state=Sum).sink("sums")
"""


class NumbersSender(SenderProcess):
    """A sender of PROGRAM."""

    def prepare(self) -> None:
        """See Server."""
        self.program.write_text(PROGRAM.replace("{name!r}", repr(self.name)))

    @property
    def program(self) -> Path:
        """The application's file."""
        return self.log.with_name("app.py")


@dataclass(frozen=True, slots=True)
class World:
    """A sender, its log, and the processor's part done by hand."""

    sender: NumbersSender
    kafka: str
    reported: Callable[[], str]

    def send(self, *rows: bytes) -> None:
        with Sender(self.sender.address, "numbers") as sender:
            sender.send_rows(rows)

    def run(self, *arguments: str) -> tuple[int, str]:
        """A command of ours: its exit code and what it printed."""
        command, *rest = arguments
        line = ["dead-letters", command, str(self.sender.program), *rest, "--kafka", self.kafka]
        if command == "retry":
            line += ["--sender", self.sender.address]
        code = end_well(command_line, line, name="bettong")
        return code, self.reported()

    def listed(self, *arguments: str) -> list[dict[str, object]]:
        code, text = self.run("list", "--each", "--json", *arguments)
        assert code == 0, text
        return [json.loads(line) for line in text.splitlines()]

    def folded(self) -> tuple[Counters, list[OutputRecord]]:
        """What a processor makes of the whole log: counters of all partitions, and output."""
        (stage,) = plan(load(str(self.sender.program))).stages
        total, output = Counters(), []
        for partition, values in values_in(self.kafka, stage_topic(self.sender.name, "numbers")).items():
            worker = PartitionWorker(
                program(stage, compiled=False),
                Assignment(self.sender.name, partition, PARTITIONS, FRAME_BYTES_MAX),
            )
            for offset, value in enumerate(values):
                output += worker.fold(offset, value)
            total.messages += worker.counters.messages
            total.duplicates += worker.counters.duplicates
        return total, output

    def process(self) -> None:
        """Folds the log and appends the dead letters that this leads to, as the processor would."""
        with LogWriter(self.kafka, frame_bytes_max=FRAME_BYTES_MAX, buffer_bytes_max=1 << 24) as log:
            for record in self.folded()[1]:
                if record.topic.endswith("dead-letters"):
                    log.append(TopicPartition(record.topic, record.partition), record.value, lambda _: None)
            log.flush(30)

    def mend(self) -> None:
        self.sender.program.with_name("mended").touch()


@pytest.fixture
def world(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    unique_name: Callable[..., str],
    tmp_path: Path,
    reported: Callable[[], str],
) -> Iterator[World]:
    with NumbersSender(unique_name(), tmp_path, kafka=kafka.bootstrap, redis=redis_server.url) as sender:
        yield World(sender, kafka.bootstrap, reported)


def test_what_the_decoder_refused_is_listed_shown_and_sent_again_once(world: World) -> None:
    world.send(b"a=1", b"!b=2", b"c=3", b"!\xff\x00=5")
    world.process()
    dead_letters = world.listed()
    assert [(each["index"], each["message"]) for each in dead_letters] == [
        (3, "base64:If8APTU="),
        (1, "!b=2"),
    ]
    name = str(dead_letters[1]["id"])
    code, text = world.run("show", name)
    assert code == 0
    where = "app.py:19 in read"
    for reported in ("ValueError: starts with !", where, "goes to source numbers", "!b=2", "as received"):
        assert reported in text
    assert world.run("show", str(dead_letters[0]["id"]))[1].endswith("21 ff 00 3d 35\n")

    code, text = world.run("retry", "--all", "--dry-run")
    assert (code, text.splitlines()[-1]) == (0, "2 would be sent; 0 were sent before, 0 cannot be sent again")
    assert world.folded()[0].messages == 2, "a dry run sends nothing"

    world.mend()
    code, text = world.run("retry", "--only", name)
    assert (code, text.splitlines()) == (
        0,
        [f"{name} sent to numbers", "1 sent; 0 were sent before, 0 cannot be sent again"],
    )
    code, text = world.run("retry", "--all")
    assert text.splitlines()[-1] == (
        "1 sent, 1 of them refused again; 1 were sent before, 0 cannot be sent again"
    )
    code, text = world.run("retry", "--only", name)
    assert (code, text) == (0, "0 sent; 1 were sent before, 0 cannot be sent again\n")
    total, _ = world.folded()
    assert (total.messages, total.duplicates) == (3, 0)
    world.process()
    listed = world.listed()
    assert [each["sent_again"] for each in listed] == [False, True, True]
    assert listed[0]["origin"] == f"numbers/dead-letter.{dead_letters[0]['id']}"


def test_dead_letters_are_counted_by_reason_as_they_come_and_frames_written_again_once(
    world: World,
) -> None:
    where = KafkaConnection(world.kafka)
    with DeadLetterTail(where, world.sender.name, frame_bytes_max=FRAME_BYTES_MAX) as tail:

        def counted(*expected: tuple[str, str, int]) -> None:
            def found() -> list[tuple[str, str, int]] | None:
                try:
                    rows = tail.count(0.3).rows.values()
                except LogError:  # the next call begins anew
                    return None
                return sorted((row.key.computation, row.key.reason, row.count) for row in rows)

            eventually(lambda: found() == sorted(expected), what=lambda: f"{expected}: {found()}")

        counted()
        world.send(b"a=1", b"!b=2", b"!c=3")
        world.process()
        refused = ("numbers", "ValueError: starts with !", 2)
        counted(refused)
        world.send(b"a=-1")
        world.process()  # the whole log again: those from before are written twice
        counted(refused, ("add", "ValueError: negative", 1))
        tail.close()
        counted(refused, ("add", "ValueError: negative", 1))


def test_a_retry_that_died_before_it_left_its_mark_is_repeated_and_counts_once(world: World) -> None:
    world.send(b"!a=1")
    world.process()
    world.mend()
    (dead_letter,) = world.listed()
    id_ = DeadLetterId.of(str(dead_letter["id"]))
    assert id_ is not None
    with Sender(world.sender.address, "numbers", id_.stream) as sender:
        sender.send_rows([b"!a=1"], sequence=1)
    assert world.listed()[0]["sent_again"] is False
    assert world.run("retry", "--all")[1].startswith(f"{id_} sent to numbers")
    total, _ = world.folded()
    assert total.messages == 1
    # Also when it is sent twice by hand, after the mark.
    send_again(world.sender.address, id_, Resend("numbers", row=b"!a=1"))
    assert world.folded()[0].messages == 1


def test_what_failed_in_a_stage_is_sent_as_a_message_and_a_replayed_dead_letter_is_one_dead_letter(
    world: World,
) -> None:
    world.send(b"a=1", b"a=-5", b"a=2")
    world.process()
    world.process()  # a replay: the same frames with the same numbers
    (dead_letter,) = world.listed()
    assert (dead_letter["computation"], dead_letter["reason"]) == ("add", "ValueError: negative")
    assert dead_letter["message"] == '{"name":"a","value":-5}'
    world.mend()
    code, text = world.run("retry", "--all")
    assert (code, text.splitlines()[-1]) == (0, "1 sent; 0 were sent before, 0 cannot be sent again")
    assert world.run("retry", "--all")[1] == "0 sent; 1 were sent before, 0 cannot be sent again\n"
    assert world.folded()[0].messages == 4


def test_a_copy_is_refused_and_where_a_retention_deleted_dead_letters_the_rest_is_found_and_held_back(
    kafka: KafkaBroker, world: World
) -> None:
    world.send(b"a=-1")
    world.process()
    world.send(b"a=-2")
    world.process()  # the first one again, and the second one
    newest, oldest = (DeadLetterId.of(str(each["id"])) for each in world.listed())
    assert newest is not None
    assert oldest is not None
    copy = oldest._replace(offset=oldest.offset + 1)
    assert copy < newest
    world.mend()
    for command in (("show", str(copy)), ("retry", "--only", str(copy))):
        code, text = world.run(*command)
        assert code == 1
        assert f"{copy} is a copy of {oldest}" in text
    assert world.folded()[0].messages == 2, "nothing was sent"
    delete_below(kafka, dead_letter_topic(world.sender.name), newest.partition, newest.offset)
    assert [each["id"] for each in world.listed()] == [str(newest)]
    code, text = world.run("retry", "--all")
    assert "maybe with the mark that it was sent again; --repeat sends it anyway" in text
    assert world.run("retry", "--all", "--repeat")[1].startswith(f"{newest} sent to numbers")


def test_lists_have_pages_filters_and_counts(world: World) -> None:
    for number in range(7):
        world.send(f"!a={number}".encode())
    world.send(b"b=-1")
    world.process()
    newest, *rest = world.listed("--limit", "3")
    assert newest["computation"] == "add"
    seen = [each["message"] for each in rest]
    page = rest
    while page:
        page = world.listed("--limit", "3", "--before", str(page[-1]["id"]))
        seen += [each["message"] for each in page]
    assert seen == [f"!a={number}" for number in reversed(range(7))]
    assert len(world.listed("--computation", "numbers")) == 7
    origin = str(newest["origin"])
    assert len(world.listed("--origin", origin)) == 1
    assert len(world.listed("--origin", "numbers/*")) == 8
    assert world.listed("--origin", "other/*") == []
    code, text = world.run("list", "--each", "--limit", "3")
    assert code == 0
    assert "8 dead letters: numbers 7, add 1" in text
    assert "older ones: --before " in text


def test_a_list_is_of_reasons_with_counts(world: World) -> None:
    for number in range(7):
        world.send(f"!a={number}".encode())
    world.send(b"b=-1")
    world.process()
    code, text = world.run("list", "--json")
    assert code == 0
    rows = [json.loads(line) for line in text.splitlines()]
    assert [(row["computation"], row["reason"], row["count"]) for row in rows] == [
        ("numbers", "ValueError: starts with !", 7),
        ("add", "ValueError: negative", 1),
    ]
    assert world.run("show", rows[0]["newest"])[0] == 0
    code, text = world.run("list", "--limit", "1")
    _head, first, *rest = text.splitlines()
    assert first.split()[:2] == ["7", "numbers"]
    assert rest == ["8 dead letters: numbers 7, add 1", "1 more reasons: --limit 2"]
    assert world.run("list", "--before", rows[0]["newest"])[0] == 2


def test_wrong_names_and_positions_say_what_to_do(world: World, tmp_path: Path) -> None:
    for name, code, reported in (
        ("0.99.0", 1, "there is no dead letter 0.99.0 in"),
        ("77.0.0", 1, "there is no dead letter 77.0.0 in"),
        ("first", 2, "'first' is not the id of a dead letter; expected e.g. 0.12.3"),
    ):
        assert world.run("show", name)[0] == code
        assert reported in world.run("show", name)[1]
    assert world.run("retry")[0] == 2
    assert world.run("retry", "--all", "--only", "0.0.0")[0] == 2
    world.send(b"!a=1")
    world.process()
    (dead_letter,) = world.listed()
    assert world.run("show", str(dead_letter["id"]), "--as", "json")[0] == 1
    program = str(world.sender.program)
    for line, code, reported in (
        (["list", program, "--dir", str(tmp_path / "none")], 6, "or say where it runs with --kafka"),
        (["list", program, "--kafka", NOBODY], 5, "no answer from Kafka"),
        (["retry", program, "--all", "--kafka", world.kafka], 6, "give --sender HOST:PORT"),
    ):
        assert end_well(command_line, ["dead-letters", *line], name="bettong") == code
        assert reported in world.reported()


def test_an_application_without_dead_letters_has_none(world: World) -> None:
    assert world.run("list") == (0, "0 dead letters\n")
    assert world.run("retry", "--all") == (0, "0 sent; 0 were sent before, 0 cannot be sent again\n")


@pytest.mark.parametrize(
    "command", [("list",), ("list", "--each", "--json"), ("retry", "--all", "--dry-run")]
)
def test_a_computation_that_there_is_not_is_an_error(command: tuple[str, ...], world: World) -> None:
    code, text = world.run(*command, "--computation", "ad")
    assert code == 2
    assert "nothing is called 'ad'; there are add, numbers, sums (see" in text
    for known in ("add", "numbers", "sums"):
        assert world.run(*command, "--computation", known)[0] == 0
    world.send(b"!a=1")
    world.process()
    assert world.run(*command, "--computation", "add")[0] == 0
