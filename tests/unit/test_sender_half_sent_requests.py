"""Requests of calls that take one, sent in part: their number, bytes and time have bounds, whatever the method."""

import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import psutil
import pytest

from bettong.local.probes import grpc_serves
from tests.samples.sender import orders, rows_frame
from tests.servers.half_sent import message
from tests.servers.sender_alone import sender_alone
from tests.servers.sender_process import opened
from tests.unit.test_sender_half_sent import (
    CALLS,
    CONNECTIONS,
    FRAME_BYTES_MAX,
    MEGABYTE,
    OVERSHOOT_BYTES,
    RECEIVE_BYTES_MAX,
    SETTINGS,
    TURNS,
    closed_connections,
    flood_of,
)

METHODS = [
    "/bettong.v1.IngestService/ListSources",
    "/grpc.health.v1.Health/Check",
    "/grpc.health.v1.Health/Watch",
]
# A sender takes so many calls beside sessions.
OTHER_CALLS_MAX = 256


@pytest.mark.parametrize("method", METHODS)
def test_half_sent_requests_stay_within_the_bound_and_other_clients_are_served(
    tmp_path: Path, method: str
) -> None:
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
        half = message(bytes(FRAME_BYTES_MAX))[:-50]
        floods = []
        for turn in range(TURNS):
            newest = [stack.enter_context(flood_of(address)) for _ in range(CONNECTIONS)]
            for flood in newest:
                for _ in range(CALLS):
                    flood.call(method, half)
            floods += newest
            done = [threads.submit(flood.run, 0.5) for flood in newest]
            for sequence in range(20 * turn + 1, 20 * turn + 21):
                honest.send(rows_frame(sequence, orders(range(10))))
                honest.acknowledged(sequence)
            assert grpc_serves(address)
            for each in done:
                each.result()
        over.set()
        watching.result()
        closed = closed_connections(log)
        sent = sum(flood.sent for flood in floods)
        reported = f"RSS {seen[0] / MEGABYTE:.0f}, at most {max(seen) / MEGABYTE:.0f} MB; sent {sent / MEGABYTE:.0f} MB"
        sys.stderr.write(f"{reported}; {closed} closed\n")
        assert sent > 1.5 * (RECEIVE_BYTES_MAX + OVERSHOOT_BYTES), reported
        assert max(seen) - seen[0] < RECEIVE_BYTES_MAX + OVERSHOOT_BYTES, reported
        assert closed > 0, reported
        assert "Traceback" not in log.read_text()


@pytest.mark.parametrize("method", METHODS)
def test_half_sent_requests_leave_calls_for_others(tmp_path: Path, method: str) -> None:
    """More of them than there are calls, each of a few bytes."""
    settings = SETTINGS | {"BETTONG_SENDER_SESSIONS_MAX": "16"}
    with (
        sender_alone(tmp_path, settings) as (address, _, log),
        ExitStack() as stack,
    ):
        half = message(bytes(100))[:-50]
        for _ in range(4):
            flood = stack.enter_context(flood_of(address))
            for _ in range(OTHER_CALLS_MAX):
                flood.call(method, half)
            flood.run(0.2)
        assert grpc_serves(address)
        session = stack.enter_context(opened(address, stream="honest"))
        session.send(rows_frame(1, orders(range(10))))
        session.acknowledged(1)
        assert "Traceback" not in log.read_text()


def test_who_never_finishes_a_request_is_closed_in_time(tmp_path: Path) -> None:
    with sender_alone(tmp_path, SETTINGS) as (address, _, log), flood_of(address) as flood:
        flood.call(METHODS[0], message(bytes(100))[:-50])
        begun_s = time.monotonic()
        flood.run(20.0)
        assert flood.is_closed
        assert 8.0 < time.monotonic() - begun_s < 18.0
        assert "a request was not complete in time" in log.read_text()
        assert "Traceback" not in log.read_text()
