"""What the processor's Spark says, and what it must not."""

import logging
import socket
import threading
from collections.abc import Iterator

import pytest
from py4j.java_gateway import GatewayClient

from bettong.settings import ProcessorSettings, read
from bettong_processor.java import silence_py4j
from bettong_processor.spark_options import options


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


def told(**more: object) -> dict[str, str]:
    """What Spark is told."""
    return options(read(ProcessorSettings, {"application": "app.py", **more}))


def test_on_one_machine_spark_asks_for_a_secret_and_serves_no_page() -> None:
    """All users of the machine reach loopback, where its driver and block manager listen."""
    found = told()
    assert found["spark.authenticate"] == "true"
    assert found["spark.ui.enabled"] == "false"
    assert found["spark.driver.bindAddress"] == "127.0.0.1"
    assert told(spark_ui=True)["spark.ui.enabled"] == "true"
    assert "spark.authenticate" not in told(spark_master="local-cluster[2,1,1024]"), (
        "it would need a secret of ours"
    )


def test_on_a_cluster_sparks_own_settings_decide() -> None:
    found = told(spark_master="spark://master:7077")
    assert "spark.authenticate" not in found
    assert "spark.ui.enabled" not in found
    assert told(spark_master="spark://master:7077", spark_ui=False)["spark.ui.enabled"] == "false"
