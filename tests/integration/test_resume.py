"""A client that is killed in the middle and started again by name, against a real sender and log."""

import json
import random
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from bettong.client import Sender
from bettong.client.message_files import Format
from bettong.client.portion_sending import stream_of_file
from bettong.errors import RefusedError
from bettong.frames.columns import Columns
from bettong.frames.frame import FrameKind
from bettong.local.broker import KafkaBroker
from bettong.local.processes import Command, Process
from bettong.local.redis_server import RedisServer
from bettong.routing import partition_of
from bettong.schema.schema import schema_of
from bettong.topics import stage_topic
from tests.samples.sender import PARTITIONS, Order, orders
from tests.servers.sender_process import SenderProcess, frames_in, taken
from tests.waiting import eventually

SEED = 20261121
MESSAGES = 20_000
FRAME = 40
KILLS = 4

# What docs/delivery.md shows: a frame a line, numbered by where the next one begins.
_READER = """
import json, sys
from bettong.client import Sender
from tests.samples.sender import Order

target, path = sys.argv[1:]
with open(path, "rb") as file, Sender(target, "orders", stream="reader") as sender:
    file.seek(sender.acknowledged)
    while line := file.readline():
        sender.send_messages([Order(**json.loads(line))], sequence=file.tell())
"""


@pytest.fixture(scope="module")
def sender(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    unique_name: Callable[..., str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SenderProcess]:
    """Shared by the tests: each uses streams of its own."""
    folder = tmp_path_factory.mktemp("sender")
    with SenderProcess(unique_name(), folder, kafka=kafka.bootstrap, redis=redis_server.url) as process:
        process.settle()
        yield process


def orders_by_partition(kafka: KafkaBroker, sender: SenderProcess, stream: str) -> dict[int, list[int]]:
    """The numbers of the orders of a stream that consumers accept, in the order of each partition."""
    found = frames_in(kafka.bootstrap, stage_topic(sender.name, "orders"))
    schema = schema_of(Order)
    return {
        partition: [
            order.number
            for frame in taken(frames)
            if frame.origin == f"orders/{stream}" and frame.columns is not None
            for order in Columns.of_payload(schema, frame.columns).messages()
        ]
        for partition, frames in found.items()
    }


def expected(messages: list[Order]) -> dict[int, list[int]]:
    return {
        partition: [each.number for each in messages if partition_of(each.symbol, PARTITIONS) == partition]
        for partition in range(PARTITIONS)
    }


def written(path: Path, messages: list[Order]) -> Path:
    """A file of JSON lines."""
    with path.open("w") as file:
        for each in messages:
            file.write(json.dumps({name: getattr(each, name) for name in Order.__dataclass_fields__}) + "\n")
    return path


def killed_and_run_again(
    sender: SenderProcess, command: Command, frames: int, *, chance: random.Random
) -> None:
    """Runs a client; kills it some times after it has sent a part of its frames, then lets it finish."""
    for _ in range(KILLS):
        goal = int(sender.metrics()["frames"]) + chance.randrange(5, frames // (2 * KILLS))
        client = Process(command)
        try:
            eventually(lambda goal=goal: int(sender.metrics()["frames"]) >= goal, seconds=60)  # type: ignore[misc]
            assert client.ending is None, f"it finished before it was killed: {client.describe_end()}"
        finally:
            client.kill()
    last = Process(command)
    ending = last.wait(120)
    assert ending is not None
    assert ending.status == 0, last.describe_end()


@pytest.mark.timeout(300)
def test_bettong_send_killed_in_the_middle_and_run_again_gives_each_message_once(
    sender: SenderProcess, kafka: KafkaBroker, tmp_path: Path
) -> None:
    messages = orders(range(MESSAGES))
    path = written(tmp_path / "orders.jsonl", messages)
    arguments = (
        "send",
        "orders",
        str(path),
        "--to",
        sender.address,
        "--stream",
        "file",
        "--frame",
        str(FRAME),
    )
    command = Command("send", (sys.executable, "-m", "bettong", *arguments), tmp_path / "send.log")
    killed_and_run_again(sender, command, MESSAGES // FRAME, chance=random.Random(SEED))
    assert "file: resuming after" in command.log.read_text()
    assert orders_by_partition(kafka, sender, "file") == expected(messages)

    again = Process(command)
    ending = again.wait(120)
    assert ending is not None
    assert ending.status == 0, again.describe_end()
    assert orders_by_partition(kafka, sender, "file") == expected(messages)


@pytest.mark.timeout(300)
def test_a_file_ends_its_stream_and_counts_once_however_often_it_is_sent(
    sender: SenderProcess, kafka: KafkaBroker, tmp_path: Path
) -> None:
    messages = orders(range(7000, 7100))
    path = written(tmp_path / "orders.jsonl", messages)
    arguments = ("send", "orders", str(path), "--to", sender.address)
    command = Command("send", (sys.executable, "-m", "bettong", *arguments), tmp_path / "send.log")

    def ends() -> dict[int, list[bool]]:
        found = frames_in(kafka.bootstrap, stage_topic(sender.name, "orders"))
        return {
            partition: [
                frame.kept
                for frame in frames
                if frame.kind is FrameKind.END
                and frame.origin == f"orders/{stream_of_file(path, Format.JSON)}"
            ]
            for partition, frames in found.items()
        }

    for number in (1, 2):
        ending = Process(command).wait(120)
        assert ending is not None
        assert ending.status == 0, command.log.read_text()
        # END goes to every partition with its messages; the second time only to the opened one, as nothing was new.
        whole = PARTITIONS + number - 1
        eventually(lambda whole=whole: sum(map(len, ends().values())) == whole, seconds=60)  # type: ignore[misc]
        assert all(kept and all(kept) for kept in ends().values())
        stream = stream_of_file(path, Format.JSON)
        assert orders_by_partition(kafka, sender, stream) == expected(messages)


@pytest.mark.timeout(300)
def test_a_program_that_numbers_by_file_offset_resumes_where_it_was_killed(
    sender: SenderProcess, kafka: KafkaBroker, tmp_path: Path
) -> None:
    messages = orders(range(1500))
    path = written(tmp_path / "orders.jsonl", messages)
    root = str(Path(__file__).resolve().parents[2])
    command = Command(
        "reader",
        (sys.executable, "-c", _READER, sender.address, str(path)),
        tmp_path / "reader.log",
        {"PYTHONPATH": root},
    )
    killed_and_run_again(sender, command, len(messages), chance=random.Random(SEED))
    assert orders_by_partition(kafka, sender, "reader") == expected(messages)


def test_several_files_are_sent_when_all_their_streams_are_open(
    sender: SenderProcess, kafka: KafkaBroker, tmp_path: Path
) -> None:
    """Else the watermark of the first would be far ahead when the second begins, and all of the second late."""
    messages = orders(range(300))
    files = [
        argument
        for source in ("orders", "quotes")
        for argument in (source, str(written(tmp_path / f"{source}.jsonl", messages)))
    ]
    arguments = ("send", *files, "--to", sender.address, "--stream", "pair", "--frame", "10")
    command = Command("send", (sys.executable, "-m", "bettong", *arguments), tmp_path / "pair.log")
    ending = Process(command).wait(60)
    assert ending is not None
    printed = command.log.read_text()
    assert ending.status == 0, printed
    assert "300 messages to orders" in printed
    assert "300 messages to quotes" in printed
    taken_in: dict[str, list[int]] = {}
    opened: dict[str, int] = {}
    for source in ("orders", "quotes"):
        frames = [
            frame
            for partition in frames_in(kafka.bootstrap, stage_topic(sender.name, source)).values()
            for frame in partition
            if frame.origin == f"{source}/pair"
        ]
        opened[source] = min(frame.ingest_ns for frame in frames if frame.kind is FrameKind.OPEN)
        taken_in[source] = [frame.ingest_ns for frame in frames if frame.kind is FrameKind.DATA]
        assert sum(frame.count for frame in frames if frame.kind is FrameKind.DATA) == 300
    assert max(opened.values()) < min(min(times) for times in taken_in.values())


def test_where_one_of_several_files_is_refused_the_command_ends(
    sender: SenderProcess, tmp_path: Path
) -> None:
    good = written(tmp_path / "good.jsonl", orders(range(20_000)))
    (bad := tmp_path / "bad.jsonl").write_text('{"side": "none"}\n')
    arguments = ("send", "orders", str(good), "quotes", str(bad), "--to", sender.address, "--frame", "10")
    command = Command("send", (sys.executable, "-m", "bettong", *arguments), tmp_path / "bad.log")
    ending = Process(command).wait(60)
    assert ending is not None
    assert ending.status == 1, command.log.read_text()
    printed = command.log.read_text()
    assert "bad.jsonl" in printed
    assert "messages to orders are durable" in printed


def test_a_file_cut_otherwise_or_another_one_is_refused_with_the_remedy(
    sender: SenderProcess, tmp_path: Path
) -> None:
    path = written(tmp_path / "orders.jsonl", orders(range(100)))
    short = written(tmp_path / "short.jsonl", orders(range(60)))

    def send(file: Path, frame: int) -> str:
        arguments = ("orders", str(file), "--to", sender.address, "--stream", "cut", "--frame", str(frame))
        command = Command("send", (sys.executable, "-m", "bettong", "send", *arguments), tmp_path / "cut.log")
        process = Process(command)
        ending = process.wait(60)
        assert ending is not None
        return f"{ending.status} {' '.join(process.tail())}"

    with Sender(sender.address, "orders", "cut") as half:
        half.send_messages(orders(range(25)), sequence=25)
        half.send_messages(orders(range(25, 50)), sequence=50)
    refused = send(path, 30)
    assert refused.startswith("1 ")
    assert "fed before, up to message 50, which is now inside a frame" in refused
    assert "resuming after 50 messages" in send(path, 25)
    refused = send(short, 25)
    assert refused.startswith("1 ")
    assert "up to message 100, and this file ends at 60" in refused


def test_a_named_stream_replayed_from_the_start_sends_only_what_is_not_durable(sender: SenderProcess) -> None:
    with Sender(sender.address, "orders", "replayed") as first:
        for number in range(1, 6):
            first.send_messages(orders([number]), sequence=10 * number)
    with Sender(sender.address, "orders", "replayed") as again:
        assert (again.acknowledged, again.sequence) == (50, 0)
        for number in range(1, 7):
            assert again.send_messages(orders([number]), sequence=10 * number) == 10 * number
        with pytest.raises(RefusedError, match="the last one was 60; send a higher sequence"):
            again.send_messages(orders([1]), sequence=10)
        assert again.send_messages(orders([7])) == 61
        again.flush()
        assert again.acknowledged == 61


def test_frames_without_a_number_on_a_stream_that_was_fed_before_are_refused_with_the_ways_out(
    sender: SenderProcess,
) -> None:
    with Sender(sender.address, "orders", "unnumbered") as first:
        first.send_messages(orders([1]))
        first.send_messages(orders([2]))
    with Sender(sender.address, "orders", "unnumbered") as again:
        with pytest.raises(
            RefusedError,
            match=r"'unnumbered' was fed before, up to frame 2.*sequence=.*acknowledged=0.*acknowledged=2 to go on",
        ):
            again.send_messages(orders([3]))
        assert again.send_messages(orders([3]), sequence=3) == 3
    with Sender(sender.address, "orders", "unnumbered", acknowledged=3) as further:
        assert further.send_messages(orders([4])) == 4
