"""Implied volatility of at-the-money options, message by message in plain Python: work that costs more than its way.

Some 15 us a message, so that two executors have something to share.
"""

import math
from dataclasses import dataclass

import bettong
from bettong import i64

_STEPS = 64
_ROOT_OF_TWO = math.sqrt(2.0)


@dataclass(slots=True)
class Number:
    """The price of an option on `key`, in cents of a share of 100; one year to go, no interest."""

    key: i64
    value: i64


@dataclass(slots=True)
class Guess:
    """The last volatility that was found for a key, where the next search starts."""

    volatility: float = 0.2


@dataclass(slots=True)
class Volatility:
    """The volatility of a key in millionths, after each odd price."""

    key: i64
    total: i64


def imply(number: Number, kept: Guess) -> Volatility | None:
    """Newton's method on Black and Scholes' price, a fixed number of steps."""
    price = 5.0 + number.value / 100.0
    volatility = kept.volatility
    for _ in range(_STEPS):
        half = volatility / 2.0
        value = 100.0 * math.erf(half / _ROOT_OF_TWO)
        slope = 100.0 * math.exp(-half * half / 2.0) / math.sqrt(2.0 * math.pi)
        volatility -= (value - price) / slope
    kept.volatility = volatility
    return Volatility(number.key, round(volatility * 1e6)) if number.value % 2 == 1 else None


app = bettong.Application("implied-volatility")
app.source("numbers", schema=Number, key="key").stateful(imply, state=Guess, name="search").sink(
    "volatilities"
)
