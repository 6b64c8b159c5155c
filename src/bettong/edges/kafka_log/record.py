"""What the log holds."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Record:
    """One value of the log, and where it stands."""

    topic: str
    partition: int
    offset: int
    value: bytes
