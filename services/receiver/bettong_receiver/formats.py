"""Reads frames of a sink as the messages that it delivers. Pure.

| sink                 | a frame's body        | a message                            | in a file            |
| -------------------- | --------------------- | ------------------------------------ | -------------------- |
| with an encoder      | rows                  | the encoder's bytes                  | `.bin`, back to back |
| without one          | columns of its schema | a JSON object (`bettong.frames.text`) | `.jsonl`, a line each |
| `dead-letters`       | rows of `DeadLetter`  | a JSON object, see `dead_letter_values`   | `.jsonl`, a line each |
"""

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from google.protobuf.message import DecodeError

from bettong.application.nodes.sink import Sink
from bettong.application.plan import Plan
from bettong.errors import FrameError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, FrameKind, decode
from bettong.frames.text import dead_letter_values, to_json
from bettong.schema.schema import Schema
from bettong.topics import DEAD_LETTERS, sink_topic
from bettong.v1.frame_pb2 import DeadLetter
from bettong_receiver.json_lines import JsonLines


@dataclass(frozen=True, slots=True)
class SinkFormat:
    """One sink: its topic and the format of its messages.

    `messages(frame)` raises FrameError for a body of another sink. `line_end` follows each message in a file.
    """

    sink: str
    topic: str
    messages: Callable[[Frame], Sequence[bytes]]
    line_end: bytes

    def messages_at_once(self, frame: Frame) -> list[bytes]:
        """As `messages`, but makes all now, while the frame is in the processor's cache, for callers that need all."""
        return list(self.messages(frame))

    @property
    def extension(self) -> str:
        """The extension of the sink's files."""
        return "jsonl" if self.line_end else "bin"

    def content(self, messages: Sequence[bytes]) -> bytes:
        """Messages as file content, with line ends."""
        return self.line_end.join([*messages, b""])


def formats(plan: Plan) -> dict[str, SinkFormat]:
    """Every sink of an application by its name, the built-in `dead-letters` last."""
    found: dict[str, SinkFormat] = {}
    for sink in plan.sinks:
        topic = sink_topic(plan.application, sink.name)
        if sink.encoder is not None:
            found[sink.name] = SinkFormat(sink.name, topic, _encoded, b"")
        else:
            found[sink.name] = SinkFormat(sink.name, topic, _as_json(_schemas(plan, sink)), b"\n")
    topic = sink_topic(plan.application, DEAD_LETTERS)
    found[DEAD_LETTERS] = SinkFormat(DEAD_LETTERS, topic, _dead_letters, b"\n")
    return found


def frame_of(sink: str, value: bytes) -> Frame:
    """Decodes a record of a sink's topic. Raises FrameError if it is no frame, or no stage of this sink numbered it.

    This bounds a delivery table by the size of the application: it never holds clients, of which there may be many.
    """
    frame = decode(value)
    if frame.kind is FrameKind.DATA and not frame.origin.startswith(f"{sink}/"):
        raise FrameError(f"frame {frame.sequence} of {frame.origin!r} is not one of sink {sink!r}")
    return frame


def columns_of(frame: Frame, schema: Schema) -> Columns:
    """The columns of a frame, for connectors that read fields. Raises FrameError unless it follows that schema."""
    if frame.columns is None or frame.schema != schema.fingerprint:
        raise FrameError(f"it does not follow {schema.name}: another version of the application wrote it")
    return Columns.of_external_payload(schema, frame.columns)


def describe_dead_letter(message: bytes) -> str:
    """Describes a dead letter, as `messages` of its sink returned it, in one line for people."""
    dead_letter = json.loads(message)
    return (
        f"{dead_letter['computation']}: {dead_letter['reason']}"
        f" (origin {dead_letter['origin']}, sequence {dead_letter['sequence']}, index {dead_letter['index']})"
    )


def _schemas(plan: Plan, sink: Sink) -> dict[int, Schema]:
    """The schemas of all streams that lead into a sink, by fingerprint."""
    outputs = [each for stage in plan.stages for each in stage.outputs if each.target is sink]
    return {each.schema.fingerprint: each.schema for each in outputs}


def _encoded(frame: Frame) -> list[bytes]:
    if frame.rows is None:
        raise FrameError(
            "it holds columns, but the sink has an encoder: another version of the application wrote it"
        )
    return list(frame.rows)


def _as_json(schemas: Mapping[int, Schema]) -> Callable[[Frame], Sequence[bytes]]:
    def messages(frame: Frame) -> Sequence[bytes]:
        if frame.columns is None:
            raise FrameError(
                "it holds rows, but the sink has no encoder: another version of the application wrote it"
            )
        schema = schemas.get(frame.schema)
        if schema is None:
            known = ", ".join(f"{each.name} {key:016x}" for key, each in schemas.items())
            raise FrameError(f"its schema {frame.schema:016x} is not one of the sink's ({known})")
        return JsonLines(Columns.of_external_payload(schema, frame.columns))

    return messages


def _dead_letters(frame: Frame) -> list[bytes]:
    if frame.rows is None:
        raise FrameError("it holds columns, not dead letters")
    try:
        return [_dead_letter(DeadLetter.FromString(row)) for row in frame.rows]
    except DecodeError as error:
        raise FrameError(f"a row is no dead letter: {error}") from None


def _dead_letter(dead_letter: DeadLetter) -> bytes:
    return to_json(dead_letter_values(dead_letter), separators=(",", ":")).encode()
