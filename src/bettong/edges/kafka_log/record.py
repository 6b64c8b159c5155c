"""What the log holds."""

from dataclasses import dataclass

# The header of a record that holds its `times`.
TIMES_HEADER = "bettong-times"


@dataclass(frozen=True, slots=True)
class Record:
    """One value of the log, and where it stands. `times`: see `LogWriter.append`; empty without."""

    topic: str
    partition: int
    offset: int
    value: bytes
    times: bytes = b""
