"""The error that stops a partition at a message or timer that a computation with on_error="stop" cannot process."""

from collections.abc import Callable

from bettong.errors import PoisonError
from bettong.identifiers import PartitionId
from bettong.worker.output.dead_letters import DeadLetters, FiringDeadLetters
from bettong.worker.output.framing import FrameEmitter

# Characters shown of a message, and of the reason why it cannot be processed.
_MESSAGE_SHOWN = 1000
_REASON_SHOWN = 300


def poison(
    partition: PartitionId,
    emitter: FrameEmitter,
    dead_letters: DeadLetters,
    text: Callable[[int], bytes],
) -> PoisonError:
    """The error, whose one line identifies the message, or the timer that fired, and names the remedy."""
    failed, frame = dead_letters.stopping, emitter.frame
    assert failed is not None  # noqa: S101 - called only where one stops
    fired = isinstance(dead_letters, FiringDeadLetters)
    what, again = ("a timer that fired", "timer") if fired else ("a message", "message")
    index = "" if fired else f", index {failed.index}"
    shown = _shortened(text(failed.index).decode(errors="replace"), _MESSAGE_SHOWN)
    return PoisonError(
        f'{failed.computation!r} (on_error="stop") cannot process {what}:'
        f" {_shortened(' '.join(failed.reason.split()), _REASON_SHOWN)};"
        f" stage {partition.stage!r}, partition {partition.partition}, offset {emitter.offset}, origin"
        f" {frame.origin}, sequence {frame.sequence}{index}. Mend the function, or give it"
        f' on_error="dead-letter" or "skip", and start the processor again: it goes on with this very {again}:'
        f" {shown}",
        computation=failed.computation,
        reason=failed.reason,
        index=-1 if fired else failed.index,
    )


def _shortened(text: str, characters: int) -> str:
    return text if len(text) <= characters else text[:characters] + " ..."
