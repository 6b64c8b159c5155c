"""An application whose messages do what ends a process, in Python and compiled."""

import ctypes
import os
import re
import signal
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

import bettong
from bettong import Application
from bettong.application.on_error import OnError
from bettong.application.plan import plan
from bettong.worker.stage_program import StageProgram, program
from tests.samples.wild_reads import wild_read
from tests.samples.worker import data


@dataclass(slots=True)
class Number:
    """What comes in, and goes out; `deed` kills."""

    group: int
    deed: int


@dataclass(slots=True)
class Seen:
    """What is kept."""

    count: int = 0


def segfault() -> None:
    """SIGSEGV."""
    ctypes.string_at(0)


def leave() -> None:
    """Ends the process without a word."""
    os._exit(7)


def leave_well() -> None:
    """The same, as if all were well."""
    os._exit(0)


def run_out() -> None:
    """What the kernel does to who has taken too much memory."""
    os.kill(os.getpid(), signal.SIGKILL)


def sleep() -> None:
    """Takes long, and lets others have Python's lock."""
    threading.Event().wait(60)


def hog() -> None:
    """Takes long, and keeps Python's lock."""
    re.match(r"(a+)+$", "a" * 60 + "b")


def take_all() -> None:
    """Takes more memory than there is, a piece at a time."""
    pieces = []
    while True:
        pieces.append(b"x" * (1 << 20))


DEEDS: dict[int, Callable[[], None]] = {
    1: segfault,
    2: leave,
    3: leave_well,
    4: run_out,
    5: sleep,
    6: hog,
    7: take_all,
}


def count(number: Number, seen: Seen) -> Number:
    """Counts, and does what the message says."""
    if number.deed in DEEDS:
        DEEDS[number.deed]()
    seen.count += 1
    return Number(number.group, seen.count * 1000 + number.deed)


@bettong.compiled
def count_compiled(number: Number, seen: Seen) -> Number:
    """The same by Numba: 1 reads where nothing is mapped, 5 never ends."""
    few = np.zeros(1)
    if number.deed == 1:
        few[0] = wild_read(64)
    while number.deed == 5:
        few[0] += 1.0
    seen.count += 1
    return Number(number.group, seen.count * 1000 + number.deed + int(few[0]))


def ready(function: Callable[..., Number] = count, on_error: OnError = "dead-letter") -> StageProgram:
    app = Application("meters")
    app.source("in", schema=Number, key="group").stateful(
        function, state=Seen, name="count", on_error=on_error
    ).sink("out")
    return program(plan(app).stages[0], compiled=True)


def frame(sequence: int, deeds: Sequence[int]) -> bytes:
    return data("in/a", sequence, [Number(index % 3, deed) for index, deed in enumerate(deeds)])
