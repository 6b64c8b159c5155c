"""Summarizes the error of a failed query in one line, and decides whether a restart can mend it. Pure."""

import re
from dataclasses import dataclass

from bettong.errors import FINAL_ERRORS, BettongError, LogTruncatedError

_FINAL = {kind.__name__: kind for kind in FINAL_ERRORS}

# Texts of Spark's errors about records that are missing from the log (failOnDataLoss).
_DATA_LOSS = ("KAFKA_DATA_LOSS", "Some data may have been lost", "OffsetOutOfRange")

# Texts of Spark's errors about a context that has stopped.
_STOPPED = ("RpcEnv has been stopped", "stopped SparkContext", "SparkContext was shut down")

# How py4j introduces a Java error.
_PY4J = "An error occurred while calling"

_PYTHON_ERROR = re.compile(r"^(?:[\w.]+\.)?(\w+(?:Error|Exception))(?:: (.+))?$", re.MULTILINE)
# Long enough for a whole PoisonError with its message.
TEXT_CHARACTERS_MAX = 2000


@dataclass(frozen=True, slots=True)
class Fault:
    """`final`: the error to end with because a restart would fail again; None when a restart may mend it."""

    text: str
    final: type[BettongError] | None
    # Spark's context has stopped by itself, so that nothing can be started in it any more.
    is_without_spark: bool = False


def fault_of(text: str) -> Fault:
    """Reads the error text of a failed query or job, in which Python's traceback is quoted within Java's."""
    errors = _PYTHON_ERROR.findall(text)
    own = [(name, reason) for name, reason in errors if name in _FINAL]
    if own:
        name, reason = own[-1]
        return Fault(f"{name}: {reason}"[:TEXT_CHARACTERS_MAX], final=_FINAL[name])
    if any(words in text for words in _DATA_LOSS):
        first = next(line for line in text.splitlines() if any(words in line for words in _DATA_LOSS))
        return Fault(first.strip()[:TEXT_CHARACTERS_MAX], final=LogTruncatedError)
    python = [
        f"{name}: {reason}" for name, reason in errors if not name.startswith(("Py4J", "SparkException"))
    ]
    lines = [line.strip(" :") for line in text.splitlines() if line.strip() and not line.startswith(_PY4J)]
    said = (python or lines or ["unknown"])[-1 if python else 0][:TEXT_CHARACTERS_MAX]
    return Fault(said, final=None, is_without_spark=any(words in text for words in _STOPPED))
