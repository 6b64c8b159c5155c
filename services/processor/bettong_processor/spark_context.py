"""Spark's context in a Java that runs already. Loads pyspark."""

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
    # pyspark asks its own test helpers whether there is NumPy, at its first call of Java; these load pandas, half a
    # second of each start, unless they find none.
    sys.modules["pandas"] = None  # type: ignore[assignment] # Python's word for: it cannot be imported
    try:
        import pyspark.testing.utils  # noqa: F401
    finally:
        del sys.modules["pandas"]

# What a context fails with.
ERRORS = (PySparkException, Py4JError)
_PY4J = str(Path(py4j.__file__).parent)


def start(conf: Mapping[str, str], address: bytes) -> SparkContext:
    """The context of Spark in the Java at `address`: its port, the length of its secret, the secret.

    Raises one of ERRORS.
    """
    context = SparkContext(conf=SparkConf().setAll(list(conf.items())), gateway=_connected(address))
    context.setLogLevel("WARN")
    silence_py4j()
    return context


def stop(context: SparkContext) -> None:
    """Ends it. Fails where Java dies meanwhile, or is killed: Java's own end follows, whatever is said here."""
    with suppress(*ERRORS, ConnectionError):
        context.stop()


def _connected(address: bytes) -> Any:
    """The gateway of pyspark."""
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
    """It logs each call that a dead Java does not answer, with its stack; what that means is said once, by us.

    The calls of its own threads too, and those to the root logger.
    """
    logging.getLogger("py4j").setLevel(logging.CRITICAL)
    logging.getLogger().addFilter(_is_not_of_py4j)


def _is_not_of_py4j(record: logging.LogRecord) -> bool:
    return not record.pathname.startswith(_PY4J)
