"""The at-least-once webhook: a receiver as a process and a real HTTP server, when either of them fails."""

import json
import random
import socket
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Self

import pytest

from bettong.errors import SettingsError
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong_receiver.connectors.webhook import Endpoint
from tests.samples.result_frames import note_frame as frame
from tests.samples.result_frames import note_numbers as expected
from tests.servers.receiver_process import PARTITIONS, Feed, ReceiverProcess, Store
from tests.waiting import eventually


class Hook:
    """An HTTP server that records the POSTs to `/hook`, and may be stopped and started on its port."""

    def __init__(self) -> None:
        self.port = free_ports(1)[0]
        self.answers: list[int] = []
        self.seen: dict[int, list[int]] = {partition: [] for partition in range(PARTITIONS)}
        self.headers: list[dict[str, str]] = []
        self.connections: list[socket.socket] = []
        self._server: ThreadingHTTPServer | None = None

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/hook?token=secret"

    def start(self) -> None:
        hook = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def setup(self) -> None:
                hook.connections.append(self.request)
                super().setup()

            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                status = hook.answers.pop(0) if hook.answers else 204
                if status == 204:
                    hook.headers.append(dict(self.headers))
                    hook.seen[int(self.headers["Bettong-Partition"])] += [
                        json.loads(line)["number"] for line in body.splitlines()
                    ]
                self.send_response(status)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the name that it has there
                pass

        self._server = ThreadingHTTPServer((LOOPBACK, self.port), Handler)
        self._server.daemon_threads = True
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()

    def stop(self) -> None:
        if self._server is not None:
            self._server.shutdown()
            self._server.server_close()
            for connection in self.connections:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)
            self.connections.clear()
            self._server = None

    def firsts(self, partition: int) -> list[int]:
        """What came, without repetitions, in the order in which it came first."""
        return list(dict.fromkeys(self.seen[partition]))

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()


@pytest.fixture
def name(unique_name: Callable[..., str]) -> str:
    return unique_name("webhook")


@pytest.fixture
def hook() -> Iterator[Hook]:
    with Hook() as one:
        yield one


@pytest.fixture
def receiver(
    name: str, hook: Hook, kafka: KafkaBroker, redis_server: RedisServer, tmp_path: Path
) -> Iterator[ReceiverProcess]:
    """A receiver that is not started yet; killed at the end."""
    one = ReceiverProcess(
        name,
        tmp_path,
        kafka=kafka.bootstrap,
        redis=redis_server.url,
        destinations="notes_to=bettong.AtLeastOnceWebhook()",
        connections={"notes": {"url": hook.url, "headers": {"Authorization": "Bearer secret"}}},
    )
    yield one
    one.kill()


def test_messages_are_posted_in_order_with_their_headers(
    receiver: ReceiverProcess, feed: Feed, hook: Hook
) -> None:
    receiver.start()
    feed.append("notes", 1, [frame(1, sequence) for sequence in range(1, 1300)])
    eventually(lambda: hook.seen[1] == expected(1299), seconds=30)
    assert hook.headers[0]["Bettong-Sink"] == "notes"
    assert hook.headers[0]["Authorization"] == "Bearer secret"
    assert hook.headers[0]["Content-Type"] == "application/x-ndjson"
    receiver.stop()
    receiver.start()
    feed.append("notes", 1, [frame(1, 1300)])
    eventually(lambda: hook.seen[1] == expected(1300), seconds=30, what="a clean stop repeats nothing")


def test_after_kills_every_message_came_at_least_once_and_first_in_order(
    receiver: ReceiverProcess, feed: Feed, hook: Hook
) -> None:
    chance = random.Random(9)
    last = 0
    for _ in range(5):
        receiver.launch()
        for sequence in range(last + 1, last + chance.randrange(20, 60)):
            last = sequence
            feed.append("notes", 0, [frame(0, sequence)])
        wanted = chance.randrange(2 * last)
        eventually(lambda least=wanted: len(hook.firsts(0)) >= least, seconds=60)  # type: ignore[misc]
        receiver.kill()
    receiver.start()
    eventually(lambda: hook.firsts(0) == expected(last), seconds=30)


def test_refusals_and_absence_are_waited_out_and_said_without_secrets(
    receiver: ReceiverProcess, feed: Feed, hook: Hook, store: Store
) -> None:
    receiver.start()
    hook.answers[:] = [503, 404, 429]
    feed.append("notes", 2, [frame(2, 1)])
    eventually(lambda: hook.seen[2] == expected(1), seconds=30)
    assert receiver.said("answered 404 Not Found; correct the URL")
    hook.stop()
    feed.append("notes", 2, [frame(2, 2)])
    eventually(lambda: "no answer" in store.metrics()["detail"], seconds=30)
    eventually(lambda: store.metrics()["messages"] == "4", what="files go on")
    hook.start()
    eventually(lambda: hook.firsts(2) == expected(2), seconds=60)
    eventually(lambda: store.metrics()["state"] == "running", seconds=30)
    assert not receiver.said("secret")


@pytest.mark.parametrize(
    "options",
    [
        {"url": "ftp://host/"},
        {"url": "http:///path"},
        {"url": "http://host:port/"},
        {"url": "http://user:secret@host/"},
        {"url": "http://host/?secret", "headers": ["secret"]},
        {"url": "http://host/?secret", "headers": {"A": 1}},
    ],
)
def test_an_address_that_cannot_be_is_refused_without_its_secrets(options: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="sink 'hook': its connection needs 'url'") as caught:
        Endpoint.of(options, sink="hook")
    assert "secret" not in str(caught.value)
