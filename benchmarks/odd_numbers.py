"""A sum for each key, a result after each odd number: the load decides how much comes out, and of how many keys."""

from dataclasses import dataclass

import bettong
from bettong import i64


@dataclass(slots=True)
class Number:
    """A number of a key."""

    key: i64
    value: i64


@dataclass(slots=True)
class Sum:
    """What is kept of a key."""

    total: int = 0


@dataclass(slots=True)
class Total:
    """The sum of a key so far."""

    key: i64
    total: i64


@bettong.compiled
def add(number: Number, kept: Sum) -> Total | None:
    """Adds a number to its key's sum."""
    kept.total += number.value
    if number.value % 2 == 1:
        return Total(number.key, kept.total)
    return None


app = bettong.Application("odd-numbers")
app.source("numbers", schema=Number, key="key").stateful(add, state=Sum, name="sums").sink("totals")
