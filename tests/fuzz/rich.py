"""Messages with a field of each kind that has a form, nested in each other, for the harnesses of frames and files."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from enum import Enum
from typing import Annotated
from uuid import UUID

import bettong
from bettong import Precision, Width


class Colour(Enum):
    """Some."""

    RED = 1
    BLUE = 2


@dataclass
class Part:
    """Of a message."""

    code: Annotated[str, Width(3)]
    is_new: bool
    price: Annotated[Decimal, Precision(9, 2)]
    at: datetime | None


@dataclass
class Rich:
    """One field of each kind."""

    number: bettong.u16
    text: str
    at: datetime
    day: date | None
    length: timedelta
    price: Annotated[Decimal, Precision(40, 10)] | None
    colour: Colour
    id: UUID
    document: bettong.Json
    parts: list[Part]
    by_name: dict[str, list[float | None]]
    part: Part | None


def rich_message(index: int) -> Rich:
    """With nulls and empty lists in turns."""
    part = Part(
        f"p{index % 10}",
        index % 2 == 0,
        Decimal(index) / 4,
        None if index % 3 else datetime(2026, 1, 1, tzinfo=UTC),
    )
    return Rich(
        number=index,
        text=f"text {index} é",
        at=datetime(1969, 12, 31, 23, 59, 59, index, tzinfo=UTC),
        day=date(2026, 1, 1 + index % 28) if index % 2 else None,
        length=timedelta(microseconds=-index),
        price=Decimal(index) if index % 2 else None,
        colour=Colour.RED if index % 2 else Colour.BLUE,
        id=UUID(int=index),
        document={"a": [index, None, "ä"]},
        parts=[part] * (index % 4),
        by_name={"x": [], "y": [1.5, None]} if index % 2 else {},
        part=part if index % 3 else None,
    )
