"""What pyspark's own threads write to the log of a processor when Java ends."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.accumulators import _start_update_server

from bettong_processor.spark_context import silence_accumulators
from tests.waiting import eventually

# What a connection must begin with.
FIRST = "known to Java"


@pytest.fixture
def server() -> Iterator[Any]:
    """Pyspark's server, which runs in a thread, as a context has it. `handled`: how many connections have ended."""
    one: Any = _start_update_server(FIRST, False)  # noqa: FBT003 - pyspark's
    silence_accumulators(SimpleNamespace(_accumulatorServer=one))  # type: ignore[arg-type]
    close, handled = one.shutdown_request, list[object]()

    def counted(request: object) -> None:
        close(request)
        handled.append(request)

    one.shutdown_request, one.handled = counted, handled
    yield one
    one.shutdown()
    one.server_close()


def sent(server: Any, data: bytes) -> None:
    """Sends that over a new connection, closes it, and waits until the server has noticed."""
    with socket.create_connection(server.server_address) as connection:
        connection.sendall(data)
    eventually(lambda: len(server.handled) == 1, what="the connection is handled")


def test_javas_end_leaves_no_traceback(server: Any, capfd: pytest.CaptureFixture[str]) -> None:
    no_updates = bytes(4)
    sent(server, FIRST.encode() + no_updates)
    assert "Traceback" not in capfd.readouterr().err


def test_any_other_error_is_still_reported(server: Any, capfd: pytest.CaptureFixture[str]) -> None:
    sent(server, b"?" * len(FIRST))
    assert "The value of the provided token" in capfd.readouterr().err
