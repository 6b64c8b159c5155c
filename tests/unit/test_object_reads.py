"""Reads of object stores are bounded by what arrives: one that brings nothing is given up, a slow one goes on."""

from __future__ import annotations

import io
import multiprocessing
import os
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any, ClassVar

import fsspec
import pytest
from fsspec.implementations.memory import MemoryFileSystem

from bettong.edges.object_store import ObjectSnapshots
from bettong.edges.object_store.store import _S3_OPTIONS
from bettong.errors import StoreUnavailableError
from bettong.identifiers import PartitionId
from tests.samples.snapshots import whole
from tests.servers.s3 import KEY_ID, REGION, SECRET, fresh_clients
from tests.waiting import eventually

CHECK = PartitionId("check", 0)
STATE = bytes(range(100))
PART_S_MAX = 2.0
# Whoever waits for longer than this gets the rest, so that a read that nobody gives up fails its test.
SILENCE_S_MAX = 20.0


class SlowFiles(MemoryFileSystem):  # type: ignore[misc] # fsspec has no types
    """A store whose client waits for ever, as sftp's. Each part takes `part_s`; no part with `silent_at` arrives, nor
    anything else of that connection. With `fails` the first request for each part fails.
    """

    protocol = "slow"
    part_s = 0.0
    silent_at: int | None = None
    is_unreachable = False
    fails: BaseException | None = None
    released = threading.Event()
    asked: ClassVar[list[int]] = []
    connected: ClassVar[list[object]] = []

    def __init__(self, **options: object) -> None:
        super().__init__(**options)
        self.is_dead = False
        self.process = os.getpid()
        self.connected.append(self)
        if self.is_unreachable:
            self.released.wait(SILENCE_S_MAX)

    def cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **kwargs: object
    ) -> bytes:
        assert self.process == os.getpid(), "two processes use one connection"
        begin = start or 0
        self.released.wait(self.part_s)
        self.is_dead |= self.silent_at in range(begin, len(STATE) if end is None else end)
        if self.is_dead:
            self.released.wait(SILENCE_S_MAX)
        self.asked.append(begin)
        if self.fails is not None and self.asked.count(begin) == 1:
            raise self.fails
        return bytes(super().cat_file(path, start, end, **kwargs))


class HalfAnswer(BaseHTTPRequestHandler):
    """An S3 that falls silent in the middle of an object."""

    released = threading.Event()

    def do_GET(self) -> None:
        self.send_response(200)
        self.send_header("Content-Length", str(len(STATE)))
        self.end_headers()
        self.wfile.write(STATE[:50])
        self.released.wait(SILENCE_S_MAX)
        self.wfile.write(STATE[50:])

    def log_message(self, *_: object) -> None:
        """Says nothing."""


@pytest.fixture
def slow(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectSnapshots]:
    """With parts of ten bytes, of which none is given up before the silence ends."""
    fsspec.register_implementation("slow", SlowFiles, clobber=True)
    monkeypatch.setattr("bettong.edges.object_store.objects._PART_BYTES", 10)
    monkeypatch.setattr("bettong.edges.object_store.objects._PART_S_MAX", 2 * SILENCE_S_MAX)
    monkeypatch.setattr("bettong.edges.object_store.store._ATTEMPTS_S", 0.0)
    monkeypatch.setattr(SlowFiles, "released", threading.Event())
    monkeypatch.setattr(SlowFiles, "asked", [])
    monkeypatch.setattr(SlowFiles, "connected", [])
    store = ObjectSnapshots("slow://states", "reads")
    store.save(CHECK, whole(1), STATE)
    yield store
    SlowFiles.released.set()
    store.clear()


@pytest.fixture
def silent_s3(monkeypatch: pytest.MonkeyPatch) -> Iterator[ObjectSnapshots]:
    monkeypatch.setattr(HalfAnswer, "released", threading.Event())
    options: Any = _S3_OPTIONS["config_kwargs"]
    monkeypatch.setitem(options, "read_timeout", PART_S_MAX)
    monkeypatch.setattr("bettong.edges.object_store.store._ATTEMPTS_S", 0.0)
    with ThreadingHTTPServer(("127.0.0.1", 0), HalfAnswer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        monkeypatch.setenv("AWS_ENDPOINT_URL", f"http://127.0.0.1:{server.server_port}")
        monkeypatch.setenv("AWS_ACCESS_KEY_ID", KEY_ID)
        monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", SECRET)
        monkeypatch.setenv("AWS_DEFAULT_REGION", REGION)
        fresh_clients()
        yield ObjectSnapshots("s3://snapshots/states", "reads")
        HalfAnswer.released.set()
        server.shutdown()
    fresh_clients()


@pytest.fixture
def impatient(slow: ObjectSnapshots, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bettong.edges.object_store.objects._PART_S_MAX", PART_S_MAX)


@pytest.mark.usefixtures("impatient")
@pytest.mark.parametrize("silent_at", [0, 57])
def test_a_read_that_brings_nothing_is_given_up(
    slow: ObjectSnapshots, monkeypatch: pytest.MonkeyPatch, silent_at: int
) -> None:
    monkeypatch.setattr(SlowFiles, "silent_at", silent_at)
    came = silent_at // 10 * 10
    said = rf"the snapshot of check/0 at 1: slow://states does not answer; .*\({came} of 100 bytes came, then no more"
    with pytest.raises(StoreUnavailableError, match=said):
        slow.load(CHECK, whole(1))


@pytest.mark.usefixtures("impatient")
def test_a_slow_read_goes_on_while_something_arrives(
    slow: ObjectSnapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(SlowFiles, "part_s", PART_S_MAX / 8)
    assert slow.load(CHECK, whole(1)) == STATE


def hang(store: ObjectSnapshots, monkeypatch: pytest.MonkeyPatch, times: int) -> None:
    """Makes so many reads that are given up while their calls wait."""
    with monkeypatch.context() as changed:
        changed.setattr("bettong.edges.object_store.objects._PART_S_MAX", 0.1)
        changed.setattr(SlowFiles, "silent_at", 0)
        for _ in range(times):
            with pytest.raises(StoreUnavailableError, match="0 of 100 bytes came, then no more in time"):
                store.load(CHECK, whole(1))


def exit_code_of_fork(target: Callable[..., object], *arguments: object) -> int | None:
    """None if the process does not end before the silence does."""
    child = multiprocessing.get_context("fork").Process(target=target, args=arguments, daemon=True)
    child.start()
    child.join(SILENCE_S_MAX / 2)
    return child.exitcode


def test_a_store_that_answers_again_is_read_however_many_reads_hung(
    slow: ObjectSnapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    hang(slow, monkeypatch, 8)
    assert slow.load(CHECK, whole(1)) == STATE


def test_a_connection_serves_until_it_falls_silent_or_breaks(
    slow: ObjectSnapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = len(SlowFiles.connected)
    assert slow.load(CHECK, whole(2)) is None
    assert slow.load(CHECK, whole(1)) == STATE
    assert len(SlowFiles.connected) == before
    hang(slow, monkeypatch, 1)
    assert slow.load(CHECK, whole(1)) == STATE
    assert len(SlowFiles.connected) == before + 1
    SlowFiles.asked.clear()
    monkeypatch.setattr(SlowFiles, "fails", ConnectionResetError("gone"))
    with pytest.raises(StoreUnavailableError, match="gone"):
        slow.load(CHECK, whole(1))
    assert slow.increments(CHECK) == [whole(1)]
    assert len(SlowFiles.connected) == before + 2


def test_a_connection_that_fell_silent_is_closed(
    slow: ObjectSnapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    client = io.BytesIO()
    monkeypatch.setattr(SlowFiles, "client", client, raising=False)
    assert slow.load(CHECK, whole(1)) == STATE
    assert not client.closed
    hang(slow, monkeypatch, 1)
    assert client.closed


def test_a_connection_that_is_not_made_in_time_is_given_up_and_serves_later(
    slow: ObjectSnapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    hang(slow, monkeypatch, 1)
    monkeypatch.setattr("bettong.edges.object_store.connections._CONNECT_S_MAX", 0.1)
    monkeypatch.setattr(SlowFiles, "is_unreachable", True)
    with pytest.raises(
        StoreUnavailableError, match=r"slow://states does not answer; .*\(no answer in 0.1 s\)"
    ):
        slow.load(CHECK, whole(1))
    made = len(SlowFiles.connected)
    SlowFiles.released.set()
    eventually(lambda: "call of slow://states" not in {each.name for each in threading.enumerate()})
    assert slow.load(CHECK, whole(1)) == STATE
    assert len(SlowFiles.connected) == made


def test_commands_that_hang_are_bounded(slow: ObjectSnapshots, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bettong.edges.object_store.connections._CALLS_MAX", 3)
    hang(slow, monkeypatch, 3)
    said = (
        "slow://states does not answer; .*3 earlier commands still wait for it; .* start this process again"
    )
    with pytest.raises(StoreUnavailableError, match=said):
        slow.load(CHECK, whole(1))
    monkeypatch.setattr("bettong.edges.object_store.store._ATTEMPTS_S", 6.0)
    SlowFiles.released.set()
    assert slow.load(CHECK, whole(1)) == STATE


def test_a_process_ends_while_its_commands_hang(
    slow: ObjectSnapshots, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert exit_code_of_fork(hang, slow, monkeypatch, 1) == 0


def test_a_forked_process_connects_by_itself(slow: ObjectSnapshots) -> None:
    assert exit_code_of_fork(slow.load, CHECK, whole(1)) == 0
    assert slow.load(CHECK, whole(1)) == STATE


@pytest.mark.parametrize(
    "fails", [ConnectionResetError("gone"), EOFError(), TimeoutError("too late")], ids=repr
)
def test_a_part_that_fails_is_read_again_alone(
    slow: ObjectSnapshots, monkeypatch: pytest.MonkeyPatch, fails: Exception
) -> None:
    monkeypatch.setattr("bettong.edges.object_store.store._ATTEMPTS_S", 6.0)
    monkeypatch.setattr(SlowFiles, "fails", fails)
    assert slow.load(CHECK, whole(1)) == STATE
    assert SlowFiles.asked == sorted([*range(0, 100, 10)] * 2)


@pytest.mark.parametrize("size", [0, 1, 10, 11, 30])
def test_objects_of_any_size_are_read_whole(slow: ObjectSnapshots, size: int) -> None:
    slow.save(CHECK, whole(2), STATE[:size])
    assert slow.load(CHECK, whole(2)) == STATE[:size]
    assert slow.load(CHECK, whole(3)) is None


def test_a_read_from_s3_that_brings_nothing_any_more_is_given_up(silent_s3: ObjectSnapshots) -> None:
    said = "the snapshot of check/0 at 1: s3://snapshots/states does not answer; .*no more data came in time"
    with pytest.raises(StoreUnavailableError, match=said):
        silent_s3.load(CHECK, whole(1))
