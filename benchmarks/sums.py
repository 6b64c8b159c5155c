"""A sum for each of very many keys: the application by which the cost of snapshots is measured."""

from dataclasses import dataclass

import bettong
from bettong import i64

TELL_EVERY = 16


@dataclass(slots=True)
class Number:
    """A number of a key."""

    key: i64
    value: i64


@dataclass(slots=True)
class Sum:
    """What is kept of a key."""

    total: int = 0
    count: int = 0


@dataclass(slots=True)
class Told:
    """The sum after every sixteenth number of a key."""

    key: i64
    total: i64


@bettong.compiled
def add(number: Number, kept: Sum) -> Told | None:
    """Adds a number to its key's sum."""
    kept.total += number.value
    kept.count += 1
    if kept.count % TELL_EVERY == 0:
        return Told(number.key, kept.total)
    return None


app = bettong.Application("sums")
app.source("numbers", schema=Number, key="key").stateful(add, state=Sum, name="sums").sink("told")
