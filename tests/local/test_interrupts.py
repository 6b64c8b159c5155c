"""Signals that end a command: what is open is closed first."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from threading import Event

import pytest

from bettong.local.interrupts import Terminated, terminable
from tests.waiting import bound_s

_END_S_MAX = 10.0
_SLOW_S = 0.2
_WAIT_S = 60.0
_CLEANED = "cleaned up"


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_inside_it_is_raised_and_outside_it_is_as_before(number: signal.Signals) -> None:
    before, hook = signal.getsignal(number), sys.unraisablehook
    with pytest.raises(Terminated), terminable():
        signal.raise_signal(number)
    assert signal.getsignal(number) is before
    assert sys.unraisablehook is hook


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_one_that_is_ignored_stays_ignored(number: signal.Signals) -> None:
    """As SIGHUP is below `nohup`."""
    before = signal.signal(number, signal.SIG_IGN)
    try:
        with terminable():
            signal.raise_signal(number)
    except Terminated:
        pytest.fail("it was raised")
    else:
        assert signal.getsignal(number) is signal.SIG_IGN
    finally:
        signal.signal(number, before)


@pytest.mark.timely
@pytest.mark.parametrize(
    ("number", "ending"), [(signal.SIGTERM, "Terminated"), (signal.SIGINT, "KeyboardInterrupt")]
)
@pytest.mark.parametrize("finalizers", [1, 3])
def test_one_that_arrives_in_a_finalizer_still_ends_the_command(
    number: signal.Signals, ending: str, finalizers: int
) -> None:
    code = f"from tests.local.test_interrupts import command; command({int(number)}, {finalizers})"
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, timeout=bound_s(_END_S_MAX), check=False
    )
    assert done.stdout.splitlines() == [_CLEANED, ending], done.stderr


def test_other_exceptions_of_finalizers_are_reported_as_before(capsys: pytest.CaptureFixture[str]) -> None:
    def fail() -> None:
        raise ValueError("of a finalizer")

    seen: list[BaseException | None] = []
    before, sys.unraisablehook = sys.unraisablehook, lambda unraisable: seen.append(unraisable.exc_value)
    try:
        with terminable():
            _Finalized(fail)
    finally:
        sys.unraisablehook = before
    assert [str(each) for each in seen] == ["of a finalizer"]


class _Finalized:
    """Calls `act` when it is collected, where the interpreter ignores what it raises."""

    def __init__(self, act: Callable[[], None]) -> None:
        self._act = act

    def __del__(self) -> None:
        self._act()


def command(number: int, finalizers: int) -> None:
    """Sends itself a signal in a finalizer, and runs so many in all: each of the others long enough to get it again."""

    def interrupted() -> None:
        os.kill(os.getpid(), number)

    def slow() -> None:
        Event().wait(_SLOW_S)

    try:
        with terminable():
            try:
                for act in (interrupted, *[slow] * (finalizers - 1)):
                    _Finalized(act)
                Event().wait(_WAIT_S)
            finally:
                print(_CLEANED)  # noqa: T201 - the test reads it
    except KeyboardInterrupt as end:
        print(type(end).__name__)  # noqa: T201 - the test reads it
