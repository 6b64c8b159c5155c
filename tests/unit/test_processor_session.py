"""What the processor's Spark session says, and what it must not."""

import logging
import socket
import threading
from collections.abc import Iterator

import pytest
from py4j.java_gateway import GatewayClient

from bettong_processor.session import silence_py4j


@pytest.fixture
def dead_java() -> Iterator[int]:
    """The port of a Java that closes each connection: it is ending."""
    with socket.create_server(("127.0.0.1", 0)) as server:

        def close_each() -> None:
            while True:
                try:
                    server.accept()[0].close()
                except OSError:
                    return

        closing = threading.Thread(target=close_each)
        closing.start()
        yield server.getsockname()[1]
        server.shutdown(socket.SHUT_RDWR)
        closing.join()


def test_py4j_does_not_tell_that_java_does_not_answer(
    dead_java: int, caplog: pytest.LogCaptureFixture
) -> None:
    """Its thread that clears Java's objects would, in the middle of a stop, behind our own last line."""
    client = GatewayClient(address="127.0.0.1", port=dead_java)
    client.send_command("call")
    assert "Exception while sending command" in caplog.text
    caplog.clear()
    silence_py4j()
    client.send_command("call")
    assert not caplog.records
    logging.getLogger("ours").warning("heard")
    logging.getLogger().warning("heard too")
    assert len(caplog.records) == 2
