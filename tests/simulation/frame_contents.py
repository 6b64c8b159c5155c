"""What frames and dead letters of random graphs hold."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np

from bettong import DeadLetter
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, decode
from bettong.schema.schema import schema_of
from bettong.topics import dead_letter_topic
from bettong.v1 import frame_pb2
from bettong.worker.output.framing import OutputRecord
from tests.simulation.messages import MESSAGES, Span

APPLICATION = "graph"
_CLASSES = {schema_of(message).fingerprint: message for message in (*MESSAGES, Span, DeadLetter)}
# How a speed says that a value does not fit differs; which field it is does not.
_FIELD = re.compile(r"(?:\w+: )?(field '\w+'): .*", re.DOTALL)


def event_times_in(frame: Frame) -> list[int]:
    """What a frame says; nothing where nobody behind needs time."""
    found: list[int] = np.frombuffer(frame.event_times, "<i8").tolist()
    return found


def shown_index(index: int, text: str) -> int:
    """Which of the windows fired: a session may have been looked at before, and have grown."""
    return 0 if '"timer":"due"' in text or '"timer":"early"' in text else index


def messages_in(frame: Frame) -> list[Any]:
    """What a frame holds: message objects, or the bytes that an encoder made."""
    if frame.columns is None:
        return list(frame.rows or ())
    found = Columns.of_payload(schema_of(_CLASSES[frame.schema]), frame.columns).messages()
    assert len(found) == frame.count
    return [
        replace(each, reason=_FIELD.sub(r"\1", each.reason)) if isinstance(each, DeadLetter) else each
        for each in found
    ]


def dead_letters_in(records: list[OutputRecord]) -> list[frame_pb2.DeadLetter]:
    """The dead letters among records."""
    topic = dead_letter_topic(APPLICATION)
    rows = [row for record in records if record.topic == topic for row in decode(record.value).rows or ()]
    return [frame_pb2.DeadLetter.FromString(row) for row in rows]


def reason_in(dead_letter: frame_pb2.DeadLetter) -> str:
    """Why, as every speed says it."""
    return _FIELD.sub(r"\1", dead_letter.reason)
