"""Spark's Java process: it starts while Python imports modules, runs Spark's context, and ends with it.

To start it early, this module imports little: whatever needs pyspark is in `spark_context`.
"""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
import time
from collections.abc import Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Timer
from types import TracebackType
from typing import TYPE_CHECKING, Self

from bettong.config.processor import ProcessorSettings
from bettong.config.service import PREFIX
from bettong.errors import SettingsError
from bettong.java import find_java
from bettong.threads import SWITCH_S
from bettong_processor.faults import fault_of
from bettong_processor.java_command import java_command
from bettong_processor.spark_master import is_on_one_machine
from bettong_processor.spark_options import options

if TYPE_CHECKING:
    from pyspark import SparkContext

# The connections of a dying Java close a moment before its process ends.
DEATH_S_MAX = 1.0
# A start takes 2 or 3 s (docs/delivery.md): after twenty times as long Java hangs and is not merely slow.
_START_S_MAX = 60.0
_END_S_MAX = 5.0
_POLL_S = 0.02
_LAUNCHER = ("-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-XX:-UsePerfData")


class Java:
    """A context manager: entering starts Java and returns at once, leaving ends it. One a process.

    Java reads settings from the environment: call `set_environment` first.

    `end_s_max`: how long Spark and Java together may take to end; then Java is killed.
    """

    def __init__(self, settings: ProcessorSettings, *, end_s_max: float = _END_S_MAX) -> None:
        self._settings = settings
        self._end_s_max = end_s_max
        self._context: SparkContext | None = None
        self._beside = ThreadPoolExecutor(1, thread_name_prefix="context")
        self._starting: Future[SparkContext] | None = None

    def __enter__(self) -> Self:
        self._folder = TemporaryDirectory(prefix="bettong-java-")
        self._address = Path(self._folder.name) / "address"
        self._conf = options(self._settings)
        self._process = _launch(self._conf, self._address)
        return self

    def begin(self, application: str) -> None:
        """Starts Spark's context in another thread, as soon as Java listens. Does not block. Call it once."""
        import bettong_processor.spark_context  # noqa: F401 - so that two threads do not import it at a time

        self._starting = self._beside.submit(self._start, application)

    def context(self, application: str) -> SparkContext:
        """Spark's context; starts it unless `begin` has. Blocks for seconds.

        Raises SettingsError when it does not start: no Java, not ready within a minute, no jars, an unknown master.
        """
        if self._starting is None:
            self.begin(application)
        assert self._starting is not None  # noqa: S101 - see above
        return self._starting.result()

    def _start(self, application: str) -> SparkContext:
        # A thread that imports modules releases the GIL every 5 ms only: each of a hundred calls of Java would wait.
        interval_s = sys.getswitchinterval()
        sys.setswitchinterval(SWITCH_S)
        try:
            return self._start_context(application)
        finally:
            sys.setswitchinterval(interval_s)

    def _start_context(self, application: str) -> SparkContext:
        self._wait_until_it_listens()
        address = self._address.read_bytes()
        self._folder.cleanup()  # now rather than at the end, which a killed process does not reach
        from bettong_processor import spark_context

        conf = {**self._conf, "spark.app.name": f"bettong {application}"}
        try:
            self._context = spark_context.start(conf, address)
        except spark_context.ERRORS as error:
            raise self._start_error(fault_of(str(error)).text) from None
        return self._context

    def ended(self, wait_s: float) -> bool:
        """Whether Java has ended, or ends within `wait_s`."""
        try:
            self._process.wait(wait_s)
        except subprocess.TimeoutExpired:
            return False
        return True

    def stop(self) -> None:
        """Ends Spark and Java, and waits, so that no output of Java follows our own last line.

        Blocks for `end_s_max` at most, and a moment longer if it must kill Java. Does nothing the second time.
        """
        killing = Timer(self._end_s_max, self._process.kill)
        killing.daemon = True
        killing.start()
        try:
            if self._context is None:
                self._process.terminate()  # there is no context, and Java may still be starting
            elif not self.ended(0.0):
                from bettong_processor import spark_context

                spark_context.stop(self._context)
            if self._process.stdin is not None:
                self._process.stdin.close()  # pyspark's signal to end
            self.ended(self._end_s_max + DEATH_S_MAX)
        finally:
            killing.cancel()
            self._process.kill()

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.stop()
        self._folder.cleanup()

    def _wait_until_it_listens(self) -> None:
        until_s = time.monotonic() + _START_S_MAX
        while not self._address.exists():
            if self.ended(_POLL_S):
                raise self._start_error(f"Java ended with exit code {self._process.returncode}")
            if time.monotonic() > until_s:
                raise self._start_error(f"Java is not ready after {_START_S_MAX:g} s")

    def _start_error(self, why: str) -> SettingsError:
        return SettingsError(
            f"Spark does not start with {PREFIX}SPARK_MASTER={self._settings.spark_master}:"
            f" {why}; is the master right, and Java 17 installed?"
        )


def _launch(conf: Mapping[str, str], address: Path) -> subprocess.Popen[bytes]:
    """Starts Spark's Java, which writes the address of its listener into the file `address`.

    Pyspark's `launch_gateway` does the same, but runs Python code in a forked child, which is unsafe beside threads,
    waits without a bound, and does not return the process to end meanwhile.
    """
    command = java_command(conf, os.environ)
    return subprocess.Popen(
        ["/bin/sh", "-c", 'trap "" INT; exec "$0" "$@"', *command],  # ignores Ctrl-C: we end it
        stdin=subprocess.PIPE,
        env=os.environ | {"SPARK_CONNECT_MODE": "0", "_PYSPARK_DRIVER_CONN_INFO_PATH": str(address)},
    )


def set_environment(settings: ProcessorSettings) -> None:
    """Sets the environment variables of Java and of Spark's Python. Call it before either starts."""
    for name, value in settings.model_dump(mode="json").items():
        if value is not None:
            os.environ[PREFIX + name.upper()] = str(value)
    os.environ["PYSPARK_PYTHON"] = sys.executable
    java = find_java(os.environ)
    if java is not None and java.home is not None:
        os.environ["JAVA_HOME"] = str(java.home)  # where spark-submit looks
    # For the short-lived Java that builds Spark's command line: 0.3 instead of 0.5 CPU seconds.
    os.environ.setdefault("SPARK_LAUNCHER_OPTS", shlex.join(_LAUNCHER))
    if is_on_one_machine(settings.spark_master):
        os.environ["SPARK_LOCAL_IP"] = "127.0.0.1"
