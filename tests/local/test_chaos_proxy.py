"""The proxy before a real server: bytes pass, in order; cuts and delays are felt, and end."""

import socket
import socketserver
import threading
import time
from collections.abc import Iterator

import pytest

from bettong.chaos.proxy import CONNECTIONS_MAX, Proxy
from bettong.local.addresses import free_ports
from tests.waiting import eventually

WAIT_S = 10.0


class Echo(socketserver.BaseRequestHandler):
    """Sends back what it gets."""

    def handle(self) -> None:
        while block := self.request.recv(65536):
            self.request.sendall(block)


class Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 2 * CONNECTIONS_MAX

    def handle_error(self, request: object, client_address: object) -> None:
        """A connection that was cut is what this is about."""


@pytest.fixture
def proxy() -> Iterator[Proxy]:
    with Server(("127.0.0.1", 0), Echo) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        with Proxy(f"127.0.0.1:{server.server_address[1]}") as between:
            yield between
        server.shutdown()
        thread.join()


def connected(proxy: Proxy) -> socket.socket:
    host, port = proxy.address.split(":")
    return socket.create_connection((host, int(port)), timeout=WAIT_S)


def asked(client: socket.socket, content: bytes) -> bytes:
    client.sendall(content)
    answer = b""
    while len(answer) < len(content) and (block := client.recv(65536)):
        answer += block
    return answer


def is_refused(proxy: Proxy) -> bool:
    """Accepted and reset, or not even accepted."""
    try:
        with connected(proxy) as client:
            return asked(client, b"x") != b"x"
    except OSError:
        return True


def test_bytes_pass_in_order_also_many(proxy: Proxy) -> None:
    content = bytes(range(256)) * 40_000
    with connected(proxy) as client:
        received: list[bytes] = []

        def read() -> None:
            while sum(map(len, received)) < len(content):
                received.append(client.recv(65536))

        reader = threading.Thread(target=read)
        reader.start()
        client.sendall(content)
        reader.join(WAIT_S)
        assert b"".join(received) == content


def test_an_end_is_passed_on(proxy: Proxy) -> None:
    with connected(proxy) as client:
        assert asked(client, b"last") == b"last"
        client.shutdown(socket.SHUT_WR)
        assert client.recv(10) == b""
    eventually(lambda: proxy.connections == 0, seconds=WAIT_S)


def test_a_cut_resets_connections_and_refuses_new_ones_until_it_is_healed(proxy: Proxy) -> None:
    with connected(proxy) as client:
        assert asked(client, b"before") == b"before"
        proxy.cut()
        with pytest.raises(ConnectionResetError):
            client.recv(10)
    assert is_refused(proxy)
    proxy.heal()
    eventually(lambda: not is_refused(proxy), seconds=WAIT_S)
    assert not is_refused(proxy)


def test_a_delay_is_felt_both_ways_and_ends(proxy: Proxy) -> None:
    with connected(proxy) as client:
        proxy.delay(0.3)
        begun = time.monotonic()
        assert asked(client, b"slow") == b"slow"
        assert time.monotonic() - begun >= 0.6
        proxy.heal()

        def is_fast() -> bool:
            begun_s = time.monotonic()
            return asked(client, b"fast") == b"fast" and time.monotonic() - begun_s < 0.6

        eventually(is_fast, seconds=WAIT_S)


def test_a_client_that_sends_on_into_a_delay_is_held_back(proxy: Proxy) -> None:
    proxy.delay(60.0)
    with connected(proxy) as client:
        client.settimeout(1.0)
        with pytest.raises(TimeoutError):
            client.sendall(bytes(64 * 1024 * 1024))


def test_a_server_that_is_away_looks_so(proxy: Proxy) -> None:
    (nobody,) = free_ports(1)
    with Proxy(f"127.0.0.1:{nobody}") as lonely:
        assert is_refused(lonely)
        assert lonely.connections == 0
    assert not is_refused(proxy)


def test_too_many_connections_are_refused_and_the_others_go_on(proxy: Proxy) -> None:
    clients = [connected(proxy) for _ in range(CONNECTIONS_MAX)]
    try:
        assert all(asked(client, b"x") == b"x" for client in clients)
        assert is_refused(proxy)
        assert asked(clients[0], b"still") == b"still"
    finally:
        for client in clients:
            client.close()
    eventually(lambda: not is_refused(proxy), seconds=WAIT_S)
