"""Spark's Java: what it is told, what it must not say, and how it starts and ends."""

import logging
import os
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from unittest.mock import Mock, patch

import pytest
from py4j.java_gateway import GatewayClient
from pyspark import SparkConf

from bettong.config.processor import ProcessorSettings
from bettong.config.reading import read
from bettong.errors import ApplicationError, SettingsError
from bettong_processor.java import Java
from bettong_processor.java_command import java_command
from bettong_processor.spark_context import silence_py4j
from bettong_processor.spark_options import options
from tests.waiting import eventually


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


@pytest.fixture
def py4j_is_heard(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Whoever has started a Java in this process before has silenced it."""
    monkeypatch.setattr(logging.getLogger(), "filters", [])
    theirs = logging.getLogger("py4j")
    before = theirs.level
    theirs.setLevel(logging.NOTSET)
    yield
    theirs.setLevel(before)


@pytest.mark.usefixtures("py4j_is_heard")
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


def reported(**more: object) -> dict[str, str]:
    """What Spark is told."""
    return options(read(ProcessorSettings, {"application": "app.py", **more}))


def test_on_one_machine_spark_asks_for_a_secret_and_serves_no_page() -> None:
    """All users of the machine reach loopback, where its driver and block manager listen."""
    found = reported()
    assert found["spark.authenticate"] == "true"
    assert found["spark.ui.enabled"] == "false"
    assert found["spark.driver.bindAddress"] == "127.0.0.1"
    assert reported(spark_ui=True)["spark.ui.enabled"] == "true"
    assert "spark.authenticate" not in reported(spark_master="local-cluster[2,1,1024]"), (
        "it would need a secret of ours"
    )


def test_on_a_cluster_sparks_own_settings_decide() -> None:
    found = reported(spark_master="spark://master:7077")
    assert "spark.authenticate" not in found
    assert "spark.ui.enabled" not in found
    assert reported(spark_master="spark://master:7077", spark_ui=False)["spark.ui.enabled"] == "false"


def test_java_is_started_as_spark_submit_would_but_without_mllib(tmp_path: Path) -> None:
    """A Spark that opens more of Java, or is told something else, is to be followed: in `java_command`."""
    conf = reported() | {"spark.driver.extraClassPath": str(tmp_path / "connector.jar")}
    ours = java_command(conf, {"SPARK_SUBMIT_OPTS": "-Djava.io.tmpdir=/scratch"})
    package = find_spec("pyspark")
    assert package is not None
    assert package.origin is not None
    home = Path(package.origin).parent
    settings = [word for name, value in conf.items() for word in ("--conf", f"{name}={value}")]
    launcher = ["java", "-cp", f"{home}/jars/*", "org.apache.spark.launcher.Main"]
    said = subprocess.run(
        [*launcher, "org.apache.spark.deploy.SparkSubmit", *settings, "pyspark-shell"],
        env={
            "PATH": os.environ["PATH"],
            "SPARK_HOME": str(home),
            "SPARK_SCALA_VERSION": "2.13",
            "SPARK_SUBMIT_OPTS": "-Djava.io.tmpdir=/scratch",
        },
        capture_output=True,
        check=True,
    ).stdout.decode()
    theirs = [word for word in said.split("\0") if word.strip()]
    main = theirs.index("org.apache.spark.deploy.SparkSubmit")
    assert sorted(ours[ours.index("org.apache.spark.deploy.SparkSubmit") :]) == sorted(theirs[main:])
    assert set(ours[3 : -len(theirs[main:])]) == set(theirs[3:main])
    jars = {Path(each).name for each in ours[2].split(os.pathsep)}
    everything = {each.name for each in (home / "jars").glob("*.jar")}
    assert [each.startswith("spark-mllib_") for each in everything - jars] == [True]
    assert jars - everything == {"connector.jar"}


@pytest.mark.parametrize(
    ("environment", "master"),
    [
        ({"SPARK_HOME": "/opt/spark"}, "local[2]"),
        ({"SPARK_CONF_DIR": "/etc/spark"}, "local[2]"),
        ({"PYSPARK_SUBMIT_ARGS": "--verbose pyspark-shell"}, "local[2]"),
        ({}, "spark://master:7077"),
        ({}, "local-cluster[2,1,1024]"),
    ],
    ids=["a Spark of the user's", "his settings", "his arguments", "a cluster", "executors"],
)
def test_where_the_user_may_have_said_more_spark_submit_is_asked(
    environment: dict[str, str], master: str
) -> None:
    command = java_command(reported(spark_master=master), environment)
    assert Path(command[0]).name == "spark-submit"
    assert command[-1] == "pyspark-shell"
    assert ("--verbose" in command) == ("PYSPARK_SUBMIT_ARGS" in environment)


def test_pyspark_loads_no_pandas_for_its_first_call_of_java() -> None:
    """Half a second of each start. The application may have them all the same."""
    program = """
import sys
import bettong_processor.spark_context
from pyspark.sql.types import NumpyScalarConverter
NumpyScalarConverter().can_convert(1)
assert "pandas" not in sys.modules
import pandas
"""
    subprocess.run([sys.executable, "-c", program], check=True)


@dataclass
class Submit:
    """Stands in for Spark's `spark-submit`: a shell script, and no Java."""

    home: Path

    def runs(self, script: str, *, end_s_max: float) -> Java:
        """Spark's Java, which is that script."""
        program = self.home / "bin" / "spark-submit"
        program.parent.mkdir(parents=True)
        program.write_text(f"#!/bin/sh\n{script}\n")
        program.chmod(0o755)
        return Java(read(ProcessorSettings, {"application": "app.py"}), end_s_max=end_s_max)

    def has_begun(self) -> bool:
        """Whether a script with `_BEGUN` has come that far."""
        return (self.home / "begun").exists()


_BEGUN = "touch $SPARK_HOME/begun"
_LISTENS = r"""printf '\000\000\000\007\000\000\000\006secret' >$SPARK_HOME/address
mv $SPARK_HOME/address $_PYSPARK_DRIVER_CONN_INFO_PATH"""
_DEAF = f"trap '' TERM; {_BEGUN}; exec sleep 60"


@pytest.fixture
def submit(tmp_path: Path) -> Iterator[Submit]:
    with patch.dict(os.environ, SPARK_HOME=str(tmp_path)):
        yield Submit(tmp_path)


@pytest.mark.parametrize(
    ("script", "start_s_max", "words"),
    [("exit 0", 30, "exit code 0"), ("exit 1", 30, "exit code 1"), ("exec sleep 60", 0.2, "after 0.2 s")],
    ids=["ends well", "fails", "hangs"],
)
def test_a_java_that_does_not_come_up_is_reported_in_time(
    submit: Submit, monkeypatch: pytest.MonkeyPatch, script: str, start_s_max: float, words: str
) -> None:
    monkeypatch.setattr("bettong_processor.java._START_S_MAX", start_s_max)
    with pytest.raises(SettingsError, match=words) as raised, submit.runs(script, end_s_max=30) as java:
        java.context("app")
    assert "BETTONG_SPARK_MASTER=" in str(raised.value)
    assert "Java 17" in str(raised.value)
    assert java.ended(0.0)


def test_a_mistake_in_the_application_does_not_wait_for_java(submit: Submit) -> None:
    """Nor for as long as an end may take: a Java that carries nothing is sent away."""
    begun_s = time.monotonic()
    with pytest.raises(ApplicationError), submit.runs("exec sleep 60", end_s_max=30) as java:
        raise ApplicationError("no module named orders")
    assert java.ended(0.0)
    assert time.monotonic() - begun_s < 20


def test_a_java_that_hangs_does_not_outlive_the_processor(submit: Submit) -> None:
    with submit.runs(_DEAF, end_s_max=0.2) as java:
        eventually(submit.has_begun)
    assert java.ended(0.0)


class StuckContext:
    """Spark's context in a Java that answers no longer: its end comes when the connection breaks."""

    def __init__(self, *, conf: SparkConf, gateway: Java) -> None:
        del conf
        self._java = gateway
        self._stopped = False
        self._accumulatorServer = Mock()

    def setLogLevel(self, level: str) -> None:  # noqa: N802 - Spark's name
        """Does nothing."""

    def stop(self) -> None:
        """Blocks for as long as Java lives. Once: there is nothing left to stop."""
        assert not self._stopped
        self._stopped = True
        assert self._java.ended(30)
        raise ConnectionResetError("Connection reset by peer")


def test_a_context_that_does_not_end_ends_with_its_java(
    submit: Submit, monkeypatch: pytest.MonkeyPatch
) -> None:
    java = submit.runs(f"{_LISTENS}; {_DEAF}", end_s_max=0.2)
    address: dict[str, str] = {}

    def connect() -> Java:
        address.update((name, os.environ[name]) for name in os.environ if "GATEWAY" in name)
        return java

    monkeypatch.setattr("bettong_processor.spark_context.launch_gateway", connect)
    monkeypatch.setattr("bettong_processor.spark_context.SparkContext", StuckContext)
    with java:
        java.context("app")
        assert address == {"PYSPARK_GATEWAY_PORT": "7", "PYSPARK_GATEWAY_SECRET": "secret"}
        assert not address.keys() & os.environ.keys(), "other processes have no use for them"
        java.stop()
        assert java.ended(0.0)
