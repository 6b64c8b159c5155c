"""Dead letters as found in the log, and their selection. Pure."""

from __future__ import annotations

import codecs
import contextlib
import heapq
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from bettong.frames.dead_letter_id import DeadLetterId
from bettong.v1.frame_pb2 import DeadLetter

# The beginning of a message that a page keeps: enough to recognize it.
_MESSAGE_BYTES_LISTED = 200
_UTF8 = codecs.getincrementaldecoder("utf-8")

Order = tuple[int, DeadLetterId]


@dataclass(frozen=True, slots=True)
class Found:
    """A dead letter, and when its message was received (Unix ns).

    `may_be_copy`: its frame may have been written before; then `id` must not be shown, for commands refuse it.
    `message_truncated`: its message has only the beginning here; the log has the rest.
    `mark_may_be_deleted`: it may have been sent again, with a mark that is no longer in the log.
    """

    id: DeadLetterId
    time_ns: int
    dead_letter: DeadLetter
    may_be_copy: bool = False
    mark_may_be_deleted: bool = False
    message_truncated: bool = False

    @property
    def order(self) -> Order:
        """The sort key: oldest first."""
        return self.time_ns, self.id


@dataclass(frozen=True, slots=True)
class ResendMark:
    """A dead letter's resend: when it began (Unix ns), and whether it is known to have arrived."""

    time_ns: int
    done: bool


def matching(
    dead_letters: Iterable[Found], computation: str | None, origin_pattern: str | None
) -> Iterator[Found]:
    """Those of a computation, and of origins that match a pattern; None stands for all."""
    for found in dead_letters:
        of_computation = computation is None or found.dead_letter.computation == computation
        of_origin = origin_pattern is None or fnmatchcase(found.dead_letter.origin, origin_pattern)
        if of_computation and of_origin:
            yield found


def page(dead_letters: Iterable[Found], limit: int, before: Order | None) -> tuple[list[Found], Counter[str]]:
    """The newest `limit` that are older than `before`, newest first, and how many there are of each computation.

    Holds no more than `limit`, each with the beginning of its message.
    """
    counts: Counter[str] = Counter()
    newest: list[tuple[Order, Found]] = []
    for found in dead_letters:
        counts[found.dead_letter.computation] += 1
        if before is None or found.order < before:
            listed = _with_beginning(found)
            push = heapq.heappush if len(newest) < limit else heapq.heappushpop
            push(newest, (listed.order, listed))
    return [found for _, found in sorted(newest, reverse=True)], counts


def _with_beginning(found: Found) -> Found:
    """The same with only the beginning of its message, where that is long. Text is cut between characters."""
    message = found.dead_letter.message
    if len(message) <= _MESSAGE_BYTES_LISTED:
        return found
    beginning = message[:_MESSAGE_BYTES_LISTED]
    with contextlib.suppress(UnicodeDecodeError):
        # It expects more, so it leaves out the bytes of an incomplete character.
        beginning = _UTF8().decode(beginning).encode()
    found.dead_letter.message = beginning
    return replace(found, message_truncated=True)
