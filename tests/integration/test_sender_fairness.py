"""A sender beside whose other clients one sends the largest frames that are allowed, back to back."""

import statistics
import sys
import threading
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from pathlib import Path

import grpc
import psutil
import pytest

from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.v1.frame_pb2 import Rows
from bettong.v1.ingest_pb2 import IngestFrame
from tests.samples.sender import orders, rows_frame
from tests.servers.sender_process import BareSession, SenderProcess, hello
from tests.waiting import eventually

MEGABYTE = 1_000_000
FRAME_BYTES_MAX = 4 * 1024 * 1024
FRAMES = 20
# Of the largest frames, whoever sends how many of them.
HELD_BYTES_MAX = 150 * MEGABYTE


@pytest.fixture
def sender(
    kafka: KafkaBroker, redis_server: RedisServer, unique_name: Callable[..., str], tmp_path: Path
) -> Iterator[SenderProcess]:
    """With the limits that it has by default."""
    settings = {"BETTONG_FRAME_BYTES_MAX": str(FRAME_BYTES_MAX), "BETTONG_SENDER_SESSIONS_MAX": "1024"}
    one = SenderProcess(unique_name(), tmp_path, kafka=kafka.bootstrap, redis=redis_server.url, **settings)
    with one as process:
        yield process


def resident_bytes(sender: SenderProcess) -> int:
    assert sender.process is not None
    return psutil.Process(sender.process.pid).memory_info().rss


def small_frames_s(address: str, stream: str) -> list[float]:
    """What each of some small frames waits for its receipt."""
    found = []
    with BareSession(address, hello(stream=stream)) as session:
        session.welcome()
        for sequence in range(1, FRAMES + 1):
            begun_s = time.monotonic()
            session.send(rows_frame(sequence, orders(range(10))))
            session.acknowledged(sequence)
            found.append(time.monotonic() - begun_s)
    return found


@contextmanager
def flood(address: str) -> Iterator[Callable[[], int]]:
    """A client that sends frames of as many empty lines as are allowed, each a message, one behind the other."""
    over = threading.Event()
    reached = [0]

    def run() -> None:
        with BareSession(address, hello(source="lines", stream="flood", client="flood")) as session:
            messages = [b""] * session.welcome().frame_messages_max
            sequence = sent = 0
            while not over.is_set():
                for sent in range(sequence + 1, sequence + 3):
                    session.send(IngestFrame(sequence=sent, rows=Rows(messages=messages)))
                sequence = session.acknowledged(sent).acknowledged
                reached[0] = sequence

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield lambda: reached[0]
    finally:
        over.set()
        thread.join(60)


def test_small_frames_of_another_client_wait_for_one_large_frame_at_most(sender: SenderProcess) -> None:
    alone_s = small_frames_s(sender.address, "alone")
    before = resident_bytes(sender)
    with flood(sender.address) as reached:
        eventually(lambda: reached() >= 2, seconds=60)
        begun, begun_s = reached(), time.monotonic()
        beside_s = small_frames_s(sender.address, "beside")
        eventually(lambda: reached() >= begun + 4, seconds=60)
        large_s = (time.monotonic() - begun_s) / (reached() - begun)
        held = resident_bytes(sender)
    sys.stderr.write(
        f"small frame alone {statistics.median(alone_s) * 1e3:.1f} ms, beside {statistics.median(beside_s) * 1e3:.1f}"
        f" ms, longest {max(beside_s) * 1e3:.0f} ms; a large frame {large_s * 1e3:.0f} ms;"
        f" RSS {before / MEGABYTE:.0f} MB, then {held / MEGABYTE:.0f} MB\n"
    )
    # One large frame, the small one's own share of it, and what a loaded machine adds.
    assert statistics.median(beside_s) < 3 * large_s + 10 * statistics.median(alone_s)
    assert held - before < HELD_BYTES_MAX


def refuse_huge_frames(address: str) -> list[float]:
    """What each of some clients waits until its frame is refused."""
    took_s = []
    for number in range(10):
        begun_s = time.monotonic()
        with BareSession(address, hello(stream=f"huge-{number}")) as session:
            session.welcome()
            session.send(IngestFrame(sequence=1, rows=Rows(messages=[b""] * 2_000_000)))
            code, text = session.status()
        took_s.append(time.monotonic() - begun_s)
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "2000000 messages, at most 65536 are taken (BETTONG_FRAME_MESSAGES_MAX)" in text
    return took_s


def test_a_frame_of_two_million_empty_messages_costs_nobody_anything(sender: SenderProcess) -> None:
    alone_s = small_frames_s(sender.address, "alone")
    before = resident_bytes(sender)
    beside_s: list[float] = []
    with ThreadPoolExecutor(1) as clients:
        refused = clients.submit(refuse_huge_frames, sender.address)
        while not refused.done():
            beside_s += small_frames_s(sender.address, f"beside-{len(beside_s)}")
    took_s = refused.result()
    behind_s = small_frames_s(sender.address, "behind")
    held = resident_bytes(sender)
    sys.stderr.write(
        f"refused after {statistics.median(took_s):.2f} s; a small frame beside it waits {max(beside_s):.2f} s at most;"
        f" RSS {before / MEGABYTE:.0f}, then {held / MEGABYTE:.0f} MB\n"
    )
    assert statistics.median(took_s) < 5
    assert max(beside_s) < 5
    assert statistics.median(behind_s) < 10 * statistics.median(alone_s) + 0.1
    # One such frame is parsed at a time; what the C library keeps of it serves the next one.
    assert held - before < HELD_BYTES_MAX
