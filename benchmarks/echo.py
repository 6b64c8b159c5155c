"""The application of the latency benchmark: one result for each message, with a state, compiled."""

from dataclasses import dataclass
from typing import Annotated

import bettong
from bettong import Width


@dataclass(slots=True)
class Reading:
    """A value of a meter."""

    meter: Annotated[str, Width(8)]
    value: float


@dataclass(slots=True)
class Total:
    """What a meter has counted so far."""

    value: float = 0.0


@bettong.compiled
def add(reading: Reading, total: Total) -> Reading:
    """Adds up."""
    total.value += reading.value
    return Reading(reading.meter, total.value)


app = bettong.Application("echo")
app.source("readings", schema=Reading, key="meter").stateful(add, state=Total).sink("totals")
