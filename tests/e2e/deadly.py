"""An application some of whose messages kill the process that folds them, but not where DEADLY_IS_HARMLESS is set."""

import asyncio
import ctypes
import os
import signal
import threading
from dataclasses import dataclass

import bettong

HARMLESS = "DEADLY_IS_HARMLESS"


@dataclass(slots=True)
class Number:
    """A number of a group; `deed` is what it does."""

    group: str
    value: int
    deed: int


@dataclass(slots=True)
class Total:
    """What a group's numbers are together, and how many."""

    group: str
    total: int
    seen: int


@dataclass(slots=True)
class Group:
    """What is kept."""

    total: int = 0
    seen: int = 0


def interrupt() -> None:
    """Raises what control-C does."""
    raise KeyboardInterrupt("why")


def cancel() -> None:
    """Raises what a cancelled task of asyncio does."""
    raise asyncio.CancelledError("why")


DEEDS = {
    1: lambda: ctypes.string_at(0),
    2: lambda: os._exit(7),
    3: lambda: os.kill(os.getpid(), signal.SIGKILL),  # as the kernel does when memory runs out
    4: lambda: threading.Event().wait(60),
    5: interrupt,
    6: cancel,
}
# These are exceptions, and always raised.
RAISING = {5, 6}


def add(number: Number, group: Group) -> Total:
    """Adds up, and does what the number says."""
    if number.deed in RAISING or (number.deed and HARMLESS not in os.environ):
        DEEDS[number.deed]()
    group.total += number.value
    group.seen += 1
    return Total(number.group, group.total, group.seen)


app = bettong.Application("deadly")
app.source("numbers", schema=Number, key="group").stateful(add, state=Group).sink("totals")
