"""Messages and times of the log as text for people. Pure."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from enum import StrEnum

from bettong.frames.text import to_json


class MessageForm(StrEnum):
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


def message_text(message: bytes, form: MessageForm) -> str:
    """A message for people. AUTO: JSON when it is a JSON object, else printable text, else hexadecimal.

    Raises ValueError for a message that does not have the requested form.
    """
    if form is MessageForm.HEX:
        return message.hex(" ")
    if form is MessageForm.TEXT:
        return message.decode()
    if form is MessageForm.JSON:
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
