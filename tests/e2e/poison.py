"""An application whose function raises for some messages, or takes long: what is left must go on."""

import threading
from dataclasses import dataclass

import bettong


@dataclass(slots=True)
class Number:
    """A number of a group."""

    group: str
    value: int


@dataclass(slots=True)
class Share:
    """A hundred, divided."""

    group: str
    share: float
    seen: int


@dataclass(slots=True)
class Group:
    """How many numbers a group has had."""

    seen: int = 0


def divide(number: Number, group: Group) -> Share:
    """Raises ZeroDivisionError for 0; a minute for a negative number."""
    if number.value < 0:
        threading.Event().wait(60)
    share = 100 / number.value
    group.seen += 1
    return Share(number.group, share, group.seen)


app = bettong.Application("poison")
app.source("numbers", schema=Number, key="group").stateful(divide, state=Group).sink("shares")
