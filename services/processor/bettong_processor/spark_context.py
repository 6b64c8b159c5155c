"""Starts Spark's context in a running Java. Imports pyspark."""

import logging
import os
import struct
import sys
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

import py4j
from py4j.protocol import Py4JError
from pyspark import SparkConf, SparkContext
from pyspark.errors import PySparkException
from pyspark.java_gateway import launch_gateway

if "pandas" not in sys.modules:
    # At its first call of Java, pyspark imports its own test helpers to see whether NumPy is installed; they import
    # pandas if they can, which takes half a second.
    sys.modules["pandas"] = None  # type: ignore[assignment] # makes `import pandas` fail
    try:
        import pyspark.testing.utils  # noqa: F401
    finally:
        del sys.modules["pandas"]

# The errors of a context that fails.
ERRORS = (PySparkException, Py4JError)
_PY4J = str(Path(py4j.__file__).parent)


def start(conf: Mapping[str, str], address: bytes) -> SparkContext:
    """Starts Spark's context in the Java at `address`: its port, the length of its secret, the secret.

    Raises one of ERRORS.
    """
    context = SparkContext(conf=SparkConf().setAll(list(conf.items())), gateway=_connect(address))
    context.setLogLevel("WARN")
    silence_py4j()
    silence_accumulators(context)
    return context


def stop(context: SparkContext) -> None:
    """Ends it. Ignores errors, as when Java dies meanwhile: the caller ends Java in any case."""
    with suppress(*ERRORS, ConnectionError):
        context.stop()


def _connect(address: bytes) -> Any:
    """Connects pyspark's gateway."""
    port, length = struct.unpack_from(">ii", address)
    variables = {
        "PYSPARK_GATEWAY_PORT": str(port),
        "PYSPARK_GATEWAY_SECRET": address[8 : 8 + length].decode(),
    }
    os.environ |= variables
    try:
        return launch_gateway()  # type: ignore[no-untyped-call]
    finally:
        for name in variables:
            del os.environ[name]


def silence_py4j() -> None:
    """Silences py4j, which logs a traceback for each call that a dead Java does not answer; we report that once.

    It logs from its own threads too, and to the root logger.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)


def silence_accumulators(context: SparkContext) -> None:
    """Silences the traceback of pyspark's server for accumulators when Java, as it ends, closes its connection."""
    server: Any = context._accumulatorServer  # noqa: SLF001 - no public access
    report = server.handle_error

    def handle_error(request: Any, address: Any) -> None:
        if not isinstance(sys.exception(), EOFError | ConnectionError):
            report(request, address)

    server.handle_error = handle_error


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return not record.pathname.startswith(_PY4J)
