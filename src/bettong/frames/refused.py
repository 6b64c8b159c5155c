"""The messages of a client's frame that its sender refused, packed into the frame's record. Pure.

    what               bytes, with F for `frame_bytes_max`
    -----------------  -------------------------------------------------------------------------------------------
    messages           at most F with their lengths: those of a client's frame of rows never need more;
                       JSON of messages without a key, and rows larger than a frame, are truncated to it
    indexes, reasons'   two bytes a message, three behind 127 reasons. Frames have at most F messages, those of rows
    numbers            half as many, because an empty row takes two bytes
    reasons            each once with its traceback, or without if there is no room for it, in the rest of 2 F
    beside             watermarks of the record's other messages, eight bytes each, in the same 2 F. Then frames have at
                       most F / 8 messages, so three bytes of those refused and eight of the others fit F

So whatever a client sends fits in `packed_bytes_max`, and no message is lost. Which messages are truncated, and which
reasons have no room, is a function of the messages alone: a resend packs the same.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from bettong.errors import FrameError
from bettong.frames.frame import ENVELOPE_BYTES_MAX
from bettong.user_errors import Reason, traceback_of
from bettong.v1.frame_pb2 import RefusedMessages

# A longer reason (an exception that quotes its input) is truncated. Each dead letter repeats it, so where many messages
# are refused it is shorter: else a frame of small messages would become a thousand times its size.
REASON_CHARACTERS_MAX = 1000
_MANY = 1000
NO_ROOM = "refused; the reasons of this frame's messages differ, and there was no room for this one"

# What protobuf adds to each message in a list: a tag, and a length of at most 5 bytes.
_TAG_BYTES = 1
# What a kind takes in addition to its reason: tags, lengths and two flags.
_KIND_BYTES = 16
# What a line of a traceback takes in addition to its text: a tag and a length.
_LINE_BYTES = 3

# Indexes are numbers of 32 bits.
_INDEXES_MAX = 2**32

_Kind = tuple[str, tuple[str, ...], bool, bool]


@dataclass(frozen=True, slots=True)
class Refused:
    """A message that becomes a dead letter: its index in the client's frame, the reason, and its content.

    `message` is JSON unless it is `as_received`; `truncated`: only its beginning. `reason` may be a Reason.
    """

    index: int
    reason: str
    message: bytes
    as_received: bool
    truncated: bool = False


def reason_text(reason: str, *, characters_max: int = REASON_CHARACTERS_MAX) -> str:
    """A reason as it is stored and shown: truncated, and escaped where an exception quotes invalid Unicode."""
    return reason[:characters_max].encode(errors="backslashreplace").decode()[:characters_max]


def packed_bytes_max(frame_bytes_max: int) -> int:
    """The most bytes that `pack` returns."""
    return 2 * frame_bytes_max + ENVELOPE_BYTES_MAX


def pack(refused: Sequence[Refused], *, frame_bytes_max: int, beside: int = 0) -> RefusedMessages:
    """Refused messages of one frame, one or more, in the order of their indexes. `beside`: bytes of room to leave."""
    indexes = [-1, *(each.index for each in refused)]
    packed = RefusedMessages(skips=[index - before - 1 for before, index in pairwise(indexes)])
    sizes = [len(each.message) for each in refused]
    cap = _message_bytes_max(sizes, frame_bytes_max)
    if cap is not None:
        packed.messages.extend(each.message[:cap] for each in refused)
    room = 2 * frame_bytes_max - beside - packed.ByteSize() - 3 * len(refused)
    are_many = len(refused) > _MANY
    characters = REASON_CHARACTERS_MAX // 10 if are_many else REASON_CHARACTERS_MAX
    numbers: dict[_Kind, int] = {}
    for each, size in zip(refused, sizes, strict=True):
        reason = reason_text(each.reason, characters_max=characters)
        lines = traceback_of(each.reason)[-1:] if are_many else traceback_of(each.reason)
        how = (each.as_received, each.truncated or size > (cap or 0))
        kind: _Kind = (NO_ROOM, (), *how)
        for found in ((reason, lines, *how), (reason, (), *how)):
            cost = 0 if found in numbers else _kind_bytes(*found[:2])
            if cost <= room:
                room -= cost
                kind = found
                break
        packed.reasons.append(numbers.setdefault(kind, len(numbers)))
    for reason, lines, as_received, truncated in numbers:
        packed.kinds.add(reason=reason, as_received=as_received, truncated=truncated, traceback=lines)
    return packed


def unpack(packed: RefusedMessages) -> Iterator[Refused]:
    """The packed messages. Raises FrameError for a value that `pack` cannot have made."""
    count = len(packed.skips)
    lengths = {len(packed.reasons), len(packed.messages) or count}
    unknown = max(packed.reasons, default=-1) >= len(packed.kinds)
    if lengths != {count} or unknown or sum(packed.skips) + count > _INDEXES_MAX:
        raise FrameError(
            f"{count} refused messages, with {len(packed.reasons)} numbers of {len(packed.kinds)} reasons, and"
            f" {len(packed.messages)} contents: they do not fit together"
        )
    kinds = [
        (Reason(kind.reason, tuple(kind.traceback)), kind.as_received, kind.truncated)
        for kind in packed.kinds
    ]
    index = -1
    for row, (skip, number) in enumerate(zip(packed.skips, packed.reasons, strict=True)):
        index += 1 + skip
        reason, as_received, truncated = kinds[number]
        yield Refused(index, reason, packed.messages[row] if packed.messages else b"", as_received, truncated)


def _kind_bytes(reason: str, lines: tuple[str, ...]) -> int:
    return _KIND_BYTES + len(reason.encode()) + sum(_LINE_BYTES + len(line.encode()) for line in lines)


def _message_bytes_max(sizes: Sequence[int], frame_bytes_max: int) -> int | None:
    """The most bytes kept of each message so that all fit a frame together; None if not one byte of each does."""
    cap = frame_bytes_max // 2  # a longer message fits no dead letter
    while cap and _listed_bytes(sizes, cap) > frame_bytes_max:
        cap //= 2
    return cap or None


def _listed_bytes(sizes: Sequence[int], cap: int) -> int:
    """The bytes that messages of these sizes, truncated to `cap`, take in a list."""
    kept = [min(size, cap) for size in sizes]
    return sum(kept) + sum(_TAG_BYTES + max(size.bit_length() + 6, 7) // 7 for size in kept)
