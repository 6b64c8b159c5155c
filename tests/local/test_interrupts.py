"""Signals that end a command: what is open is closed first."""

import signal

import pytest

from bettong.local.interrupts import Terminated, terminable


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP])
def test_inside_it_is_raised_and_outside_it_is_as_before(number: signal.Signals) -> None:
    before = signal.getsignal(number)
    with pytest.raises(Terminated), terminable():
        signal.raise_signal(number)
    assert signal.getsignal(number) is before
