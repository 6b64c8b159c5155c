"""Frames that come in part and are never finished, or wait for room, from several connections, beside others."""

import re
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import grpc
import psutil
import pytest

from bettong.v1.ingest_pb2 import IngestFrame, IngestRequest
from tests.samples.sender import orders, rows_frame
from tests.servers.half_sent import HalfSender, message
from tests.servers.sender_alone import sender_alone
from tests.servers.sender_process import BareSession, hello, opened
from tests.waiting import eventually

MEGABYTE = 1_000_000
FRAME_BYTES_MAX = 4 * 1024 * 1024
RECEIVE_BYTES_MAX = 64 * 1024 * 1024
CONNECTIONS = 12
CALLS = 8
TURNS = 4
# Of a connection: all together are a network of 1 Gbit/s.
BYTES_PER_S = 10 * MEGABYTE
# What comes between two looks of a loaded machine, and what the C library keeps of what was held.
OVERSHOOT_BYTES = 180 * MEGABYTE
INGEST = "/bettong.v1.IngestService/Ingest"


SETTINGS = {
    "BETTONG_FRAME_BYTES_MAX": str(FRAME_BYTES_MAX),
    "BETTONG_SENDER_RECEIVE_BYTES_MAX": str(RECEIVE_BYTES_MAX),
    "BETTONG_SENDER_SESSIONS_PER_CLIENT_MAX": "1024",
}


def a_frame(stream: str) -> bytes:
    """A hello, and a frame of 4 MB."""
    frame = IngestRequest(frame=IngestFrame(sequence=1, columns=bytes(FRAME_BYTES_MAX - 100)))
    greeting = hello(stream=stream, client=stream).SerializeToString()
    return message(greeting) + message(frame.SerializeToString())


def half_a_frame(stream: str) -> bytes:
    """Without its end."""
    return a_frame(stream)[:-50]


def closed_connections(log: Path) -> int:
    """How many were closed; one that is slow to go is reported at each look."""
    closed = re.findall(
        r"connection closed: its messages are incomplete or wait.*\bpeer\W+(\S+)", log.read_text()
    )
    return len(set(closed))


def test_half_sent_frames_stay_within_the_bound_and_other_clients_are_served(tmp_path: Path) -> None:
    with sender_alone(tmp_path, SETTINGS) as (address, pid, log), ExitStack() as stack:
        process = psutil.Process(pid)
        over = threading.Event()
        seen = [process.memory_info().rss]

        def watch() -> None:
            while not over.wait(0.02):
                seen.append(process.memory_info().rss)

        honest = stack.enter_context(opened(address, stream="honest"))
        threads = stack.enter_context(ThreadPoolExecutor(CONNECTIONS + 1))
        stack.callback(over.set)  # before the threads are waited for, also when something fails
        watching = threads.submit(watch)
        floods = []
        for turn in range(TURNS):
            newest = [stack.enter_context(flood_of(address)) for _ in range(CONNECTIONS)]
            for number, flood in enumerate(newest):
                for call in range(CALLS):
                    flood.call(INGEST, half_a_frame(f"half-{turn}-{number}-{call}"))
            floods += newest
            done = [threads.submit(flood.run, 0.5) for flood in newest]
            for sequence in range(20 * turn + 1, 20 * turn + 21):
                honest.send(rows_frame(sequence, orders(range(10))))
                honest.acknowledged(sequence)
            for each in done:
                each.result()
        over.set()
        watching.result()
        closed = closed_connections(log)
        sent = sum(flood.sent for flood in floods)
        reported = f"RSS {seen[0] / MEGABYTE:.0f}, at most {max(seen) / MEGABYTE:.0f} MB; sent {sent / MEGABYTE:.0f} MB"
        sys.stderr.write(f"{reported}; {closed} closed\n")
        # All of them stay open that are not closed: sent would be held.
        assert sent > 1.5 * (RECEIVE_BYTES_MAX + OVERSHOOT_BYTES), reported
        assert closed > 0, reported
        assert max(seen) - seen[0] < RECEIVE_BYTES_MAX + OVERSHOOT_BYTES, reported


def test_whole_frames_that_wait_while_the_buffer_is_full_stay_within_the_same_bound(tmp_path: Path) -> None:
    """As when Kafka stands still: each session holds one, which nobody has read."""
    settings = SETTINGS | {"BETTONG_SENDER_BUFFER_BYTES_MAX": str(1024 * 1024)}
    with (
        sender_alone(tmp_path, settings, answered_bytes_max=10_000) as (address, pid, log),
        ExitStack() as stack,
    ):
        honest = stack.enter_context(opened(address, stream="honest"))
        for sequence in (1, 2):
            honest.send(rows_frame(sequence, orders(range(60_000))))  # each fills the buffer
        threads = stack.enter_context(ThreadPoolExecutor(CONNECTIONS))
        process = psutil.Process(pid)
        before = most = process.memory_info().rss
        floods = []
        for turn in range(3 * TURNS):
            newest = [stack.enter_context(flood_of(address)) for _ in range(CONNECTIONS)]
            for number, flood in enumerate(newest):
                flood.call(INGEST, a_frame(f"whole-{turn}-{number}"))
            floods += newest
            list(threads.map(lambda flood: flood.run(0.5), newest))
            most = max(most, process.memory_info().rss)
        closed = closed_connections(log)
        sent = sum(flood.sent for flood in floods)
        reported = (
            f"RSS {before / MEGABYTE:.0f}, then {most / MEGABYTE:.0f} MB; sent {sent / MEGABYTE:.0f} MB"
        )
        sys.stderr.write(f"{reported}; {closed} closed\n")
        # All of them stay open that are not closed: sent would be held.
        assert sent > 1.5 * (RECEIVE_BYTES_MAX + OVERSHOOT_BYTES), reported
        assert 0 < closed < len(floods), reported
        assert most - before < RECEIVE_BYTES_MAX + OVERSHOOT_BYTES, reported


def test_what_is_not_read_yet_is_not_held(tmp_path: Path) -> None:
    """Calls that the sender has no room for, or has not come to, hold a window each and not a message."""
    settings = SETTINGS | {"BETTONG_SENDER_SESSIONS_PER_CLIENT_MAX": "4"}
    with (
        sender_alone(tmp_path, settings) as (address, pid, _),
        flood_of(address) as flood,
    ):
        before = psutil.Process(pid).memory_info().rss
        for call in range(60):
            flood.call(INGEST, half_a_frame(f"half-{call}"))
        flood.run(1.0)
        after = psutil.Process(pid).memory_info().rss
        # All 60 would be 250 MB.
        assert after - before < 4 * FRAME_BYTES_MAX + 80 * MEGABYTE


def test_one_client_leaves_sessions_for_others(tmp_path: Path) -> None:
    """All clients of these tests are one, by their address."""
    settings = SETTINGS | {"BETTONG_SENDER_SESSIONS_PER_CLIENT_MAX": "2"}
    with sender_alone(tmp_path, settings) as (address, _, _), opened(address, stream="one"):
        with opened(address, stream="two"), BareSession(address, hello(stream="three")) as third:
            code, text = third.status()
            assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
            assert "address loopback has 2 sessions here" in text
        eventually(lambda: _is_let_in(address))


def _is_let_in(address: str) -> bool:
    with BareSession(address, hello(stream="three")) as session:
        try:
            return session.welcome().credits > 0
        except grpc.RpcError:
            return False


@pytest.mark.parametrize("name", ["source", "stream", "client"])
def test_a_name_of_4_mb_is_answered_and_logged_in_few_words(tmp_path: Path, name: str) -> None:
    greeting = hello()
    setattr(greeting.hello, name, "x" * 4_000_000)
    with sender_alone(tmp_path, SETTINGS) as (address, _, log):
        with BareSession(address, greeting) as session:
            code, text = session.status()
        assert code is grpc.StatusCode.INVALID_ARGUMENT
        assert len(text) < 500
        assert len(log.read_bytes()) < 4000


def flood_of(address: str) -> HalfSender:
    return HalfSender(int(address.rpartition(":")[2]), bytes_per_s=BYTES_PER_S)
