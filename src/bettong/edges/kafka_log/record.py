"""A record of the log, and its headers."""

from dataclasses import dataclass

# The header of a record that holds its `times`.
TIMES_HEADER = "bettong-times"
# The header of a sampled frame's records, by W3C Trace Context.
TRACE_HEADER = "traceparent"


@dataclass(frozen=True, slots=True)
class Record:
    """One value of the log, and its position. `times`, `traceparent`: see `LogWriter.append`; empty if missing."""

    topic: str
    partition: int
    offset: int
    value: bytes
    times: bytes = b""
    traceparent: bytes = b""
