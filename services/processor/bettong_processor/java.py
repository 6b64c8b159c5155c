"""Spark's Java: starts beside the thread that asked for it, carries Spark's context, and ends with it."""

import logging
import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import Any, Self

import py4j
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway

from bettong.errors import SettingsError
from bettong.settings import PREFIX, ProcessorSettings
from bettong_processor.faults import fault_of
from bettong_processor.spark_options import options

# Connections of a Java that dies close a moment before it is gone.
DEATH_S_MAX = 1.0
_END_S_MAX = 5.0
_LAUNCHER = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")
_PY4J = str(Path(py4j.__file__).parent)


class Java:
    """A context manager: entering starts Java and returns at once, leaving ends it. One a process.

    `end_s_max`: what it has for its end.
    """

    def __init__(self, settings: ProcessorSettings, *, end_s_max: float = _END_S_MAX) -> None:
        self._settings = settings
        self._end_s_max = end_s_max
        self._gateway: Future[Any] = Future()
        self._context: SparkContext | None = None

    def __enter__(self) -> Self:
        _set_environment(self._settings)
        beside = ThreadPoolExecutor(1, thread_name_prefix="java")
        launch: Callable[[SparkConf], Any] = launch_gateway
        self._gateway = beside.submit(launch, _conf(self._settings))
        beside.shutdown(wait=False)
        return self

    def context(self, application: str) -> SparkContext:
        """Starts Spark, once. Blocks for seconds.

        Raises SettingsError when it cannot: no Java, no jars, no such master.
        """
        conf = _conf(self._settings).setAppName(f"bettong {application}")
        try:
            self._context = SparkContext(conf=conf, gateway=self._gateway.result())
        except (PySparkException, Py4JError) as error:
            raise SettingsError(
                f"Spark does not start with {PREFIX}SPARK_MASTER={self._settings.spark_master}:"
                f" {fault_of(str(error)).text}; is the master right, and Java 17 installed?"
            ) from None
        self._context.setLogLevel("WARN")
        silence_py4j()
        return self._context

    def ended(self, wait_s: float) -> bool:
        """Whether Java is gone, or goes within `wait_s`."""
        try:
            self._gateway.result().proc.wait(wait_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> None:
        """Ends Spark, and Java: nothing that it has to say may come behind our own last line.

        When it is gone already, or never came, there is nothing left to end.
        """
        if self._gateway.exception() is not None:
            return
        if self._context is not None:
            try:
                self._context.stop()
            except (Py4JError, ConnectionError):
                if not self.ended(DEATH_S_MAX):
                    raise
        self._gateway.result().proc.stdin.close()  # that is how pyspark tells it to end
        self.ended(self._end_s_max)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()


def _set_environment(settings: ProcessorSettings) -> None:
    """What Java, and Spark's Python through it, are to find."""
    for name, value in settings.model_dump(mode="json").items():
        if value is not None:
            os.environ[PREFIX + name.upper()] = str(value)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    # Of the Java that only puts the command line of Spark's together: 0.3 instead of 0.5 CPU seconds.
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", shlex.join(_LAUNCHER))
    if settings.spark_master.startswith("local"):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"


def _conf(settings: ProcessorSettings) -> SparkConf:
    return SparkConf().setMaster(settings.spark_master).setAll(list(options(settings).items()))


def silence_py4j() -> None:
    """It logs each call that a dead Java does not answer, with its stack; what that means is said once, by us.

    The calls of its own threads too, and those to the root logger.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return not record.pathname.startswith(_PY4J)
