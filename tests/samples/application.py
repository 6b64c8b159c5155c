"""Messages and a state to describe applications with, and what a refused description is expected to raise."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import pytest

from bettong import ApplicationError, f64


@dataclass
class Trade:
    """A message."""

    symbol: str
    price: f64


@dataclass
class Quote:
    """A message of another schema with the same key."""

    symbol: str
    bid: f64


@dataclass
class Alert:
    """What comes out."""

    symbol: str


class Seen:
    """A state; any class serves."""

    anything = True


def keep(trade: Trade) -> bool:
    """A predicate."""
    return trade.price > 0


def refused(*texts: str) -> Any:
    """Expects an ApplicationError that has all of these texts."""
    return pytest.raises(
        ApplicationError, match="(?s)" + "".join(f"(?=.*{re.escape(text)})" for text in texts)
    )


# A program with a stateful computation; `field`: what is kept of a key, as a line of a dataclass.
COUNTING = """
from dataclasses import dataclass
import bettong

@dataclass
class Note:
    text: str

@dataclass
class Kept:
    {field}

def keep(note: Note, kept: Kept) -> Note:
    return note

app = bettong.Application("kept")
app.source("notes", schema=Note, key="text").stateful(keep, state=Kept).sink("out")
"""
