"""What the log holds."""

from dataclasses import dataclass

# The header of a record that holds its `times`.
TIMES_HEADER = "bettong-times"
# That of a sampled frame's records, by W3C Trace Context.
TRACE_HEADER = "traceparent"


@dataclass(frozen=True, slots=True)
class Record:
    """One value of the log, and where it stands. `times`, `traceparent`: see `LogWriter.append`; empty without."""

    topic: str
    partition: int
    offset: int
    value: bytes
    times: bytes = b""
    traceparent: bytes = b""
