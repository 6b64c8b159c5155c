"""Users' decoders and key functions that stand still, or that end the process of the sender."""

import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from itertools import count
from pathlib import Path

import grpc
import pytest

from bettong import metrics
from bettong.client import Sender
from bettong.edges.redis_store import RedisDeaths, RedisStore
from bettong.errors import RefusedError
from bettong.frames.columns import Columns
from bettong.frames.refused import unpack
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.schema.schema import schema_of
from bettong.topics import stage_topic
from bettong.v1.frame_pb2 import Rows
from bettong.v1.ingest_pb2 import IngestFrame
from tests.samples.sender import Line
from tests.servers.sender_process import SenderProcess, frames_in, opened, taken
from tests.waiting import bound_s, eventually

APPLICATION = """
import asyncio, ctypes, os, re, time
import bettong
from tests.samples.sender import Line

def end(text):
    if text == "exit":
        os._exit(3)
    if text == "segfault":
        ctypes.string_at(0)
    if text == "backtrack":
        re.match(r"(a+)+$", "a" * 40 + "b")
    if text == "sleep":
        time.sleep(30)
    if text == "slow":
        time.sleep(1)
    if text == "slower":
        time.sleep(3)
    if text == "busy":
        until_s = time.thread_time() + 1
        while time.thread_time() < until_s:
            pass
    if text == "interrupt":
        raise KeyboardInterrupt
    if text == "cancel":
        raise asyncio.CancelledError

def decode(row):
    end(row.decode())
    return Line(row.decode())

def key(line):
    end(line.text)
    return line.text

app = bettong.Application({name!r})
decoder = bettong.each(decode)
plain = bettong.each(lambda row: Line(row.decode()))
app.source("decoded", schema=Line, decoder=decoder).sink("all-decoded")
app.source("keyed", schema=Line, decoder=plain, key=key).sink("all-keyed")
app.source("strict", schema=Line, decoder=decoder, on_error="stop").sink("all-strict")
app.source("quick", schema=Line, decoder=plain).sink("all-quick")
"""
SCHEMA = schema_of(Line)


class Decoding(SenderProcess):
    """A sender whose users' functions do what a line says."""

    def prepare(self) -> None:
        """See Server."""
        self._file.write_text(APPLICATION.format(name=self.name))


@pytest.fixture
def resting(
    kafka: KafkaBroker, redis_server: RedisServer, unique_name: Callable[..., str], tmp_path: Path
) -> Decoding:
    """For `started_again`: not started."""
    settings = {"BETTONG_SENDER_MARKS": str(tmp_path / "marks"), "BETTONG_SENDER_LOCK_MS_MAX": "1000"}
    return Decoding(unique_name(), tmp_path, kafka=kafka.bootstrap, redis=redis_server.url, **settings)


@pytest.fixture
def sender(resting: Decoding) -> Iterator[Decoding]:
    """One that runs."""
    with resting as process:
        process.settle()
        yield process


@contextmanager
def started_again(sender: SenderProcess) -> Iterator[list[str]]:
    """Starts it, and as often as it dies, as a supervisor does; how it ended each time."""
    over, ends = threading.Event(), list[str]()

    def watch() -> None:
        while not over.wait(0.05):
            if not sender.runs() and sender.process is not None:
                ends.append(str(sender.process.ending))
                sender.launch()

    ready = threading.Event()

    def run() -> None:  # children end with the thread that starts them
        sender.launch()
        ready.set()
        watch()
        sender.stop()

    thread = threading.Thread(target=run)
    thread.start()
    try:
        assert ready.wait(60)
        eventually(sender.answers, seconds=60)
        sender.settle()
        yield ends
    finally:
        over.set()
        thread.join(60)


def lines_in(
    kafka: KafkaBroker, sender: SenderProcess, source: str
) -> tuple[list[str], list[tuple[str, str]]]:
    """The lines of a source that consumers take, and those that were refused, with their reasons."""
    lines: list[str] = []
    refused: list[tuple[str, str]] = []
    for frames in frames_in(kafka.bootstrap, stage_topic(sender.name, source)).values():
        for frame in taken(frames):
            if frame.columns is not None:
                lines += [line.text for line in Columns.of_payload(SCHEMA, frame.columns).messages()]
            if frame.refused is not None:
                refused += [(each.message.decode(), each.reason) for each in unpack(frame.refused)]
    return sorted(lines), refused


@pytest.mark.timely
def test_a_decoder_that_sleeps_stops_no_other_source_and_status_says_which_is_busy(sender: Decoding) -> None:
    with opened(sender.address, "decoded") as stuck, opened(sender.address, "quick", stream="q") as quick:
        begun_s = time.monotonic()
        stuck.send(IngestFrame(sequence=1, rows=Rows(messages=[b"sleep"])))
        waits = []
        for sequence in range(1, 6):
            sent_s = time.monotonic()
            quick.send(IngestFrame(sequence=sequence, rows=Rows(messages=[b"a", b"b"])))
            quick.acknowledged(sequence)
            waits.append(time.monotonic() - sent_s)
        detail = eventually(lambda: sender.metrics().get(metrics.DETAIL.name), seconds=20)
        assert detail.startswith("source decoded is busy with one frame of decoded/feed since 20")
        assert time.monotonic() - begun_s < 30, "it must still be at it"
        sys.stderr.write(f"receipts beside it after {max(waits) * 1e3:.0f} ms at most\n")
        assert max(waits) < bound_s(1.0)
        assert stuck.acknowledged(1).acknowledged == 1


@pytest.mark.timely
@pytest.mark.parametrize("pace", ["slow", "busy"])
def test_a_decoder_that_takes_a_second_a_frame_holds_up_its_own_source_alone(
    pace: str,
    kafka: KafkaBroker,
    redis_server: RedisServer,
    unique_name: Callable[..., str],
    tmp_path: Path,
) -> None:
    """Its clients fill its share of the buffer, and have their turns; clients of another source notice nothing."""
    settings = {
        "BETTONG_SENDER_MARKS": str(tmp_path / "marks"),
        "BETTONG_SENDER_SESSIONS_MAX": "16",
        "BETTONG_SENDER_BUFFER_BYTES_MAX": str(1024 * 1024),  # a quarter for each source
    }
    frames = [
        IngestFrame(sequence=sequence, rows=Rows(messages=[pace.encode(), b"a" * 60_000]))
        for sequence in (1, 2)
    ]
    with (
        Decoding(
            unique_name(), tmp_path, kafka=kafka.bootstrap, redis=redis_server.url, **settings
        ) as sender,
        ExitStack() as stack,
    ):
        sender.settle()
        clients = [
            stack.enter_context(opened(sender.address, "decoded", stream=name, client=name))
            for name in "abcdef"
        ]
        quick = stack.enter_context(opened(sender.address, "quick", stream="q", client="q"))
        begun_s = time.monotonic()
        for each in clients:
            each.send(*frames)
        waits: list[float] = []
        while (sent_s := time.monotonic()) < begun_s + 3:
            quick.send(IngestFrame(sequence=len(waits) + 1, rows=Rows(messages=[b"a", b"b"])))
            quick.acknowledged(len(waits) + 1)
            waits.append(time.monotonic() - sent_s)
        for each in clients:
            each.acknowledged(1)
        took_s = time.monotonic() - begun_s
        sys.stderr.write(f"{len(waits)} receipts beside it, after {max(waits) * 1e3:.0f} ms at most\n")
        # The clients of the other source wait for several frames of a second each.
        assert max(waits) < bound_s(2.0)
        assert took_s >= len(clients)


# Which function it was has nothing to do with how the process ended: each of both once at least, below in other pairs.
@pytest.mark.parametrize(
    ("source", "end", "how"),
    [
        ("decoded", "exit", "it left no crash report"),
        ("keyed", "segfault", "signal 11"),
        ("keyed", "backtrack", "it kept the interpreter's lock for longer than BETTONG_SENDER_LOCK_MS_MAX"),
    ],
)
def test_a_message_that_ends_the_process_twice_is_refused_and_the_stream_goes_on(
    source: str, end: str, how: str, resting: Decoding, kafka: KafkaBroker, redis_server: RedisServer
) -> None:
    with started_again(resting) as ends:
        with Sender(resting.address, source, reconnect_s=60) as client:
            for texts in (["a", "b"], ["c", end, "d"], ["e"]):
                client.send_rows([text.encode() for text in texts])
            client.flush(60)
            assert client.dead_letters == 1
        assert len(ends) == 2
        with RedisStore(redis_server.url, resting.name) as store:
            assert len(RedisDeaths(store).known()) == 2
    lines, refused = lines_in(kafka, resting, source)
    assert lines == ["a", "b", "c", "d", "e"]
    ((text, reason),) = refused
    assert end in text
    assert reason.startswith(f"a function of its source killed the sender twice: {how}")
    assert resting.said("a sender died while it read this frame") == 2


def test_a_message_that_ends_the_process_is_found_beside_a_decoder_that_is_always_busy(
    resting: Decoding, kafka: KafkaBroker
) -> None:
    """After each new start both clients send again at once, and the slow frame is begun first."""

    def is_taken(life: int) -> bool:
        """One life of the sender: whether the frame that kills was taken at last."""
        try:
            with (
                opened(resting.address, "keyed") as deadly,
                opened(resting.address, "decoded", stream=f"busy-{life}") as busy,
            ):
                busy.send(IngestFrame(sequence=1, rows=Rows(messages=[b"a"])))
                for sequence in (2, 3):
                    busy.send(IngestFrame(sequence=sequence, rows=Rows(messages=[b"slower"])))
                busy.acknowledged(1)
                deadly.send(IngestFrame(sequence=1, rows=Rows(messages=[b"a", b"exit", b"b"])))
                assert deadly.acknowledged(1).dead_letters == 1
                busy.acknowledged(3)
        except grpc.RpcError:  # it died, or does not run yet, or the stream is still the dead one's
            return False
        return True

    with started_again(resting) as ends:
        lives = count()
        eventually(lambda: is_taken(next(lives)), seconds=100)
        assert len(ends) == 2
    lines, refused = lines_in(kafka, resting, "keyed")
    assert lines == ["a", "b"]
    assert len(refused) == 1
    assert not lines_in(kafka, resting, "decoded")[1]


def test_a_decoder_that_keeps_the_interpreters_lock_stops_other_sources_for_seconds(
    resting: Decoding,
) -> None:
    waits: list[float] = []
    with (
        started_again(resting) as ends,
        Sender(resting.address, "decoded", reconnect_s=60) as stuck,
        Sender(resting.address, "quick", reconnect_s=60) as quick,
    ):
        stuck.send_rows([b"a", b"backtrack", b"b"])
        begun_s = time.monotonic()
        while not stuck.dead_letters:
            assert time.monotonic() < begun_s + 120
            sent_s = time.monotonic()
            quick.send_rows([b"a"])
            quick.flush(60)
            waits.append(time.monotonic() - sent_s)
        stuck.flush(60)
        assert len(ends) == 2
    sys.stderr.write(f"receipts of another source after {max(waits):.1f} s at most\n")
    assert max(waits) < 30


def test_where_errors_stop_a_stream_the_client_learns_what_kills(resting: Decoding) -> None:
    def feed() -> None:
        with Sender(resting.address, "strict", reconnect_s=60) as client:
            client.send_rows([b"a", b"segfault"])

    with (
        started_again(resting) as ends,
        pytest.raises(RefusedError, match="killed the sender twice: signal 11"),
    ):
        feed()
    assert len(ends) == 2


@pytest.mark.parametrize("raised", ["interrupt", "cancel"])
def test_whatever_a_decoder_or_key_function_raises_refuses_its_message(
    raised: str, sender: Decoding, kafka: KafkaBroker
) -> None:
    for source in ("decoded", "keyed"):
        with Sender(sender.address, source) as client:
            client.send_rows([b"a", raised.encode(), b"b"])
            client.flush(60)
            assert client.dead_letters == 1
        assert lines_in(kafka, sender, source)[0] == ["a", "b"]
    assert sender.runs()
