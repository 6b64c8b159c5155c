"""The at-least-once webhook, with an HTTP server whose answers never end. See `integration/test_webhook_sink.py`."""

import threading
from collections.abc import Callable, Iterator
from contextlib import closing, suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from bettong.edges.redis_store import RedisSink, RedisStore
from bettong.local.addresses import LOOPBACK
from bettong.local.redis_server import RedisServer
from bettong_receiver.connectors.webhook import AtLeastOnceWebhookConnector, Endpoint
from bettong_receiver.progress import SinkPartition
from tests.samples.sink_batches import sink_batch
from tests.waiting import eventually

BEGINNINGS = {SinkPartition("notes", 0): 0}


@pytest.fixture
def streaming() -> Iterator[str]:
    """The URL of a server that accepts each POST, and then streams some bytes now and then, as an event stream does."""
    ended = threading.Event()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(200)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            with suppress(OSError):
                while not ended.wait(0.02):
                    self.wfile.write(b"3\r\n:\r\n\r\n")

        def log_message(self, format: str, *arguments: Any) -> None:  # noqa: A002 - the name that it has there
            pass

    with ThreadingHTTPServer((LOOPBACK, 0), Handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, args=(0.05,), daemon=True).start()
        yield f"http://{LOOPBACK}:{server.server_port}/hook"
        ended.set()
        server.shutdown()


def test_an_answer_that_never_ends_holds_nothing_up(
    streaming: str,
    redis_server: RedisServer,
    unique_name: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    endpoint = Endpoint.of({"url": streaming}, sink="notes")
    delivered = threading.Event()
    with (
        RedisStore(redis_server.url, unique_name("webhook")) as store,
        closing(
            AtLeastOnceWebhookConnector(endpoint, RedisSink(store), sink="notes", lines=True)
        ) as connector,
    ):
        connector.open(BEGINNINGS)
        # Its beginning is awaited for longer: the connector was made before.
        monkeypatch.setattr("bettong_receiver.connectors.webhook._ANSWER_WAIT_S_MAX", 0.5)

        def deliver() -> None:
            for offset in (1, 2):
                connector.deliver([sink_batch(0, [b"{}"], offset)])
            delivered.set()

        threading.Thread(target=deliver, daemon=True).start()
        eventually(delivered.is_set, what="both are delivered, while the server streams on")
        assert RedisSink(store).position("notes/webhook", 0) == sink_batch(0, [], 2).position()
