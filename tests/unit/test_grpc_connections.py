"""Connections are inspected and closed by their sockets, even when no descriptor is free."""

import contextlib
import os
import resource
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from bettong.edges.grpc_server import connections
from bettong.edges.grpc_server.connections import close_connection, received_bytes


@contextlib.contextmanager
def no_descriptor_free() -> Iterator[None]:
    """Uses up all descriptors, as a client does that opens as many connections as `ulimit -n` allows."""
    bounds = resource.getrlimit(resource.RLIMIT_NOFILE)
    taken = [os.open(os.devnull, os.O_RDONLY)]
    highest = max(int(path.name) for path in Path("/dev/fd").iterdir())
    resource.setrlimit(resource.RLIMIT_NOFILE, (highest + 10, bounds[1]))
    try:
        with contextlib.suppress(OSError):
            while True:
                taken.append(os.dup(taken[0]))
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, bounds)
        for each in taken:
            os.close(each)


@contextlib.contextmanager
def connected() -> Iterator[tuple[str, socket.socket, socket.socket]]:
    """A client's connection: the peer's name, its socket and ours."""
    with (
        socket.create_server(("127.0.0.1", 0)) as server,
        socket.create_connection(server.getsockname()) as client,
    ):
        connection, (host, port) = server.accept()
        with connection:
            yield f"ipv4:{host}:{port}", client, connection


def ended(client: socket.socket) -> bool:
    """Whether the other end has shut the connection down."""
    client.settimeout(10)
    return client.recv(1) == b""


@pytest.mark.parametrize("may_exceed_bounds", [False, True])
def test_a_connection_is_inspected_and_closed(*, may_exceed_bounds: bool) -> None:
    with connected() as (peer, client, connection):
        client.sendall(b"x" * 100)
        assert connection.recv(100, socket.MSG_WAITALL)
        with no_descriptor_free() if may_exceed_bounds else contextlib.nullcontext():
            assert received_bytes().get(peer) == (100 if sys.platform.startswith("linux") else None)
            assert close_connection(peer)
            assert not close_connection("ipv4:127.0.0.1:1")
        assert ended(client)


def test_inspecting_keeps_no_connection_open() -> None:
    with connected() as (peer, client, connection):
        assert not close_connection(f"{peer}0")
        received_bytes()
        connection.close()
        assert ended(client)


def test_without_a_list_of_descriptors_no_connection_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "_DESCRIPTORS", Path("/nowhere"))
    assert received_bytes() == {}
    assert not close_connection("ipv4:127.0.0.1:1")
