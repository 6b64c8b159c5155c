"""Parses and checks a client's requests. Pure.

gRPC would parse every request on the event loop. So they arrive as bytes: a hello that is too large is refused
unparsed; a frame is parsed where it is split, in its turn, and refused before its messages are touched when they are
too many. Parsing is cheap beside what follows: 2,000,000 empty messages in 4 MB take 20 ms and 65 MB, freed at once.
"""

import re

from google.protobuf.message import DecodeError

from bettong.identifiers import Origin, SequenceNumber
from bettong.ingest.refusal import exhausted, invalid
from bettong.v1.ingest_pb2 import Hello, IngestFrame, IngestRequest

# Three names of at most 128 characters of at most 4 bytes, a number, and what fields a later version may add.
HELLO_BYTES_MAX = 4096

# Limit of each name in a hello. Those of sources are shorter.
NAME_CHARACTERS_MAX = 128

# Signed 64-bit Unix nanoseconds, as most programs keep them, end in the year 2262. A negative one looks larger.
SENT_NS_MAX = 2**63 - 1

# What protobuf writes beside a row, at most: a tag, and a length of five bytes.
ROW_BYTES_MAX = 6

# A stream cannot go on after the highest possible number, and its name is lost: tables and leases keep the number.
# Such numbers are mistakes: -1 without its sign, the greatest of 63 bits. Gaps have no bound, for numbers are
# positions in inputs: an offset of Kafka stays far below this, nanoseconds since 1970 until the year 2116.
SEQUENCE_MAX = 2**62

_STREAM = re.compile(rf"[A-Za-z0-9._-]{{1,{NAME_CHARACTERS_MAX}}}")

# The first byte of a request that is a frame: field 2, with a length.
_FRAME_TAG = 0x12


def read_hello(data: bytes) -> Hello:
    """Parses the first request of a session. Raises Refusal (INVALID_ARGUMENT) for another, or for invalid names.

    So the names in later log lines and errors are short and printable.
    """
    if data[:1] != bytes([_FRAME_TAG]):
        if len(data) > HELLO_BYTES_MAX:
            raise invalid(
                f"the hello has {len(data)} bytes, at most {HELLO_BYTES_MAX} are taken; shorten its names"
            )
        request = _parsed(data, "the first message of the session")
        if request.WhichOneof("request") == "hello":
            _check_names(request.hello)
            return request.hello
    raise invalid("the first message of a session must be a hello, this one was a frame; say hello first")


def check_stream(source: str, stream: str) -> None:
    """Raises Refusal (INVALID_ARGUMENT) for an invalid name of a stream."""
    if not _STREAM.fullmatch(stream):
        raise invalid(
            f"stream {_shortened(stream)} of source {_shortened(source)}: expected 1 to {NAME_CHARACTERS_MAX} letters,"
            " digits, '.', '_' or '-'; choose a name that is unique among the clients of the source"
        )


def _check_names(hello: Hello) -> None:
    for name, value in (("source", hello.source), ("client", hello.client)):
        if len(value) > NAME_CHARACTERS_MAX:
            raise invalid(f"Hello.{name} has {len(value)} characters, expected at most {NAME_CHARACTERS_MAX}")
    if not hello.client.isprintable():
        raise invalid(f"Hello.client is {_shortened(hello.client)}, expected printable characters")
    check_stream(hello.source, hello.stream)


def _shortened(name: str) -> str:
    return repr(name[:NAME_CHARACTERS_MAX])


def read_frame(data: bytes, origin: Origin, *, messages_max: int) -> IngestFrame:
    """Parses a later request. Raises Refusal for one that is no frame, or has more rows than the sender takes."""
    request = _parsed(data, f"a message of {origin!r}")
    if request.WhichOneof("request") != "frame":
        raise invalid(f"a message of {origin!r} is no frame; say hello once, then send frames only")
    frame = request.frame
    check_count(len(frame.rows.messages), SequenceNumber(frame.sequence), origin, messages_max=messages_max)
    return frame


def check_count(count: int, sequence: SequenceNumber, origin: Origin, *, messages_max: int) -> None:
    """Raises Refusal (RESOURCE_EXHAUSTED) for a frame of too many messages."""
    if count > messages_max:
        raise exhausted(
            f"frame {sequence} of {origin!r} has {count} messages, at most {messages_max} are taken"
            " (BETTONG_FRAME_MESSAGES_MAX); send fewer messages a frame"
        )


def check_sequence(sequence: SequenceNumber, origin: Origin) -> None:
    """Raises Refusal (INVALID_ARGUMENT) for a number so high that the stream could not go on after it."""
    if sequence > SEQUENCE_MAX:
        raise invalid(
            f"frame {sequence} of {origin!r}: expected a sequence of at most {SEQUENCE_MAX}, for after a higher one"
            " the stream could not go on; number frames by a counter or a position in your input, from 1"
        )


def check_sent(frame: IngestFrame, origin: Origin) -> None:
    """Raises Refusal (INVALID_ARGUMENT) for a `sent_ns` that is no time."""
    if frame.sent_ns > SENT_NS_MAX:
        raise invalid(
            f"frame {frame.sequence} of {origin!r}: IngestFrame.sent_ns is {frame.sent_ns}, expected Unix nanoseconds,"
            f" at most {SENT_NS_MAX} (in the year 2262), or 0"
        )


def _parsed(data: bytes, what: str) -> IngestRequest:
    try:
        return IngestRequest.FromString(data)
    except DecodeError:
        raise invalid(
            f"{what} is no IngestRequest; expected protobuf as protos/bettong/v1/ingest.proto says"
        ) from None
