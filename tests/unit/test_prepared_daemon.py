"""Spark's Python daemon: a prepared process takes its place, and without one it is a daemon by itself."""

from __future__ import annotations

import os
import socket
import struct
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import psutil
import pytest

from bettong_processor.daemon.prepared import ADDRESS, Prepared, handed_over, take_over
from tests.looked_at import has_ended, words_of
from tests.samples.many_descriptors import low_descriptors_taken
from tests.waiting import eventually

WAIT_S_MAX = 60.0


@contextmanager
def daemon() -> Iterator[subprocess.Popen[bytes]]:
    """Started as Spark's Java does it, which reads a port from its output, and ends it by closing its input."""
    command = [sys.executable, "-m", "bettong_processor.daemon", "pyspark.worker"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as process:
        try:
            yield process
        finally:
            process.kill()


def port(process: subprocess.Popen[bytes]) -> int:
    assert process.stdout is not None
    return int(struct.unpack(">i", process.stdout.read(4))[0])


def listener(at: int) -> int | None:
    """The process that listens at a port."""
    listening = (each for each in psutil.net_connections("tcp") if each.status == psutil.CONN_LISTEN)
    return next(each.pid for each in listening if each.laddr and each.laddr.port == at)


def end(process: subprocess.Popen[bytes]) -> None:
    """Waits for its end; pyspark gives 0 or 1, whatever the reason."""
    assert process.stdin is not None
    process.stdin.close()
    process.wait(WAIT_S_MAX)


def prepared_process() -> psutil.Process:
    """The kernel shows a process's arguments only some time after `Popen` has returned (proc(5))."""

    def found() -> list[psutil.Process]:
        return [each for each in psutil.Process().children() if "--prepared" in words_of(each)]

    (process,) = eventually(found, what="a prepared process")
    return process


def test_the_first_daemon_is_the_prepared_process_and_the_next_one_itself() -> None:
    with Prepared():
        prepared = prepared_process()
        with daemon() as first:
            assert listener(port(first)) == prepared.pid
            with daemon() as second:
                assert listener(port(second)) == second.pid
                end(second)
            assert first.poll() is None, "it ends with the process that took its place"
            end(first)
        assert psutil.wait_procs([prepared], WAIT_S_MAX)[1] == []
    assert ADDRESS not in os.environ


def test_a_prepared_process_has_the_environment_that_the_daemon_was_given(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with Prepared():
        prepared = prepared_process()
        monkeypatch.setenv("PYTHON_UNIX_DOMAIN_ENABLED", "true")  # which pyspark's daemon obeys
        monkeypatch.setenv("PYTHON_WORKER_FACTORY_SOCK_DIR", "/nowhere")
        with daemon() as first:
            assert first.stdout is not None
            assert first.stdout.read() == b"", "it cannot make a socket there"
            assert psutil.wait_procs([prepared], WAIT_S_MAX)[1] == []
            first.wait(WAIT_S_MAX)


def test_where_the_prepared_process_has_died_the_daemon_is_one_by_itself() -> None:
    with Prepared():
        prepared_process().kill()
        with daemon() as process:
            assert listener(port(process)) == process.pid
            end(process)


def test_a_prepared_process_ends_with_the_processor() -> None:
    code = (
        "import os; from bettong_processor.daemon.prepared import Prepared\n"
        "one = Prepared().__enter__(); print(one._process.pid, flush=True); os.kill(os.getpid(), 9)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert done.returncode == -9
    pid = int(done.stdout)
    eventually(lambda: has_ended(pid), seconds=WAIT_S_MAX, what="it has ended")


def test_leaving_ends_a_process_that_nobody_took() -> None:
    with Prepared():
        prepared = prepared_process()
    assert not prepared.is_running()


def test_a_processor_that_has_ended_is_noticed_by_any_descriptor() -> None:
    with low_descriptors_taken(), socket.socket(socket.AF_UNIX) as listening:
        tether, held = os.pipe()
        os.close(held)
        assert not take_over(listening.dup(), tether)
        os.close(tether)


def test_another_users_process_is_neither_believed_nor_served(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.socket(socket.AF_UNIX) as listening:
        listening.bind("")
        listening.listen()
        own = os.geteuid()
        monkeypatch.setattr(os, "geteuid", lambda: own + 1)
        assert not handed_over(listening.getsockname().hex())
        listening.accept()[0].close()
        held, tether = os.pipe()
        with socket.socket(socket.AF_UNIX) as client:
            client.connect(listening.getsockname())
            assert not take_over(listening.dup(), held)
            assert client.recv(1) == b""
        os.close(held)
        os.close(tether)
