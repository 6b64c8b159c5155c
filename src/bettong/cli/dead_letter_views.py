"""How dead letters look: in a table, one with all its fields, as JSON."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import UTC, datetime
from enum import StrEnum
from typing import TYPE_CHECKING

from bettong.frames.text import dead_letter_values, to_json

if TYPE_CHECKING:
    from rich.table import Table

    from bettong.cli.dead_letter_log import Found, Mark
    from bettong.frames.dead_letter_id import DeadLetterId

_REASON_CHARACTERS = 120


class Form(StrEnum):
    """How a message is shown."""

    AUTO = "auto"
    JSON = "json"
    TEXT = "text"
    HEX = "hex"
    RAW = "raw"


def moment(time_ns: int) -> str:
    """A time of the log, in UTC to the millisecond; nothing for 0."""
    if time_ns == 0:
        return ""
    return datetime.fromtimestamp(time_ns / 1e9, UTC).isoformat(" ", "milliseconds").removesuffix("+00:00")


def dead_letters_table(found: list[Found], marks: Mapping[DeadLetterId, Mark]) -> Table:
    """One line a dead letter."""
    from rich.markup import escape
    from rich.table import Table

    table = Table(box=None, header_style="dim", pad_edge=False)
    for column in ("id", "taken in (UTC)", "computation", "origin", "sequence", "index", "reason"):
        table.add_column(column, justify="right" if column in ("sequence", "index") else "left")
    for each in found:
        dead_letter = each.dead_letter
        reason = (
            dead_letter.reason
            if len(dead_letter.reason) <= _REASON_CHARACTERS
            else f"{dead_letter.reason[:120]}..."
        )
        sent = "[green]sent again[/green] " if each.id in marks and marks[each.id].done else ""
        table.add_row(
            str(each.id),
            moment(each.time_ns),
            escape(dead_letter.computation),
            escape(dead_letter.origin),
            str(dead_letter.sequence),
            str(dead_letter.index),
            sent + escape(" ".join(reason.split())),
        )
    return table


def as_json(found: Found, mark: Mark | None) -> str:
    """All there is of a dead letter, as one line."""
    dead_letter = found.dead_letter
    values = {
        "id": str(found.id),
        "taken_in": moment(found.time_ns),
        **dead_letter_values(dead_letter),
        "as_received": dead_letter.as_received,
        "cut": dead_letter.cut,
        "sent_again": mark is not None and mark.done,
    }
    return to_json(values)


def message_text(message: bytes, form: Form) -> str:
    """A message for people. AUTO: JSON when it is an object of that, else printable text, else hexadecimal.

    Raises ValueError for a message that is not of the form that was asked for.
    """
    if form is Form.HEX:
        return message.hex(" ")
    if form is Form.TEXT:
        return message.decode()
    if form is Form.JSON:
        try:
            return to_json(json.loads(message), indent=2)
        except RecursionError:
            raise ValueError("it is nested too deeply") from None
    try:
        values = json.loads(message)
        if isinstance(values, dict):
            return to_json(values, indent=2)
    except (ValueError, RecursionError):
        pass
    try:
        text = message.decode()
    except UnicodeDecodeError:
        return message.hex(" ")
    return text if text.isprintable() else message.hex(" ")
