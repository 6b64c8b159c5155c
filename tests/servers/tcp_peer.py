"""A real TCP server that keeps what it is sent, as docs/sinks.md says, or answers whatever a test likes."""

import socketserver
import struct
import threading
from contextlib import suppress
from typing import Any, Self

from bettong.local.addresses import LOOPBACK

OK = b"ok\n"


class Peer:
    """Keeps what it answers with `ok`. `answers`: what it says instead, in turn; None: it closes."""

    def __init__(self, *, lines: bool) -> None:
        self.answers: list[bytes | None] = []
        self.kept: list[bytes] = []
        peer = self

        class Handler(socketserver.StreamRequestHandler):
            def handle(self) -> None:
                with suppress(ConnectionError, struct.error):
                    while True:
                        batch = _lines(self.rfile) if lines else _frames(self.rfile)
                        if batch is None:
                            return
                        answer = peer.answers.pop(0) if peer.answers else OK
                        if answer is None:
                            return
                        if answer.startswith(OK):
                            peer.kept += batch
                        self.wfile.write(answer)

        self._server = socketserver.ThreadingTCPServer((LOOPBACK, 0), Handler)
        self._server.daemon_threads = True

    @property
    def address(self) -> tuple[str, int]:
        return LOOPBACK, self._server.server_address[1]

    def __enter__(self) -> Self:
        threading.Thread(target=self._server.serve_forever, args=(0.05,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def _lines(stream: Any) -> list[bytes] | None:
    """As docs/sinks.md says."""
    batch: list[bytes] = []
    for line in stream:
        if line == b"\n":
            return batch
        batch.append(line.rstrip(b"\n"))
    return None


def _frames(stream: Any) -> list[bytes] | None:
    batch: list[bytes] = []
    while True:
        (length,) = struct.unpack(">I", stream.read(4))
        if length == 2**32 - 1:
            return batch
        batch.append(stream.read(length))
