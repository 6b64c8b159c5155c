"""Messages of one frame that cannot be processed: collected while its rows pass a stage."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from bettong.application.on_error import DEAD_LETTER, SKIP, STOP, OnError
from bettong.errors import PoisonError
from bettong.frames.refused import reason_text
from bettong.worker.progress import FoldProgress


@dataclass(frozen=True, slots=True)
class Letter:
    """Why `computation` could not process the message at `place` of the frame."""

    computation: str
    reason: str
    place: int


def poison(letter: Letter) -> PoisonError:
    """The error of a message that stops its partition, as far as a letter alone tells it."""
    return PoisonError(f'{letter.computation!r} (on_error="stop"): {letter.reason}; message {letter.place}')


@dataclass(slots=True)
class Letters:
    """The dead letters of one frame, in the order in which they arose, and how many messages were skipped.

    `on_error` by computation; dead letters where it says nothing. `stop` makes the error of a message that must
    stop its partition. `progress`: how far the frame is.
    """

    on_error: Mapping[str, OnError] = field(default_factory=dict)
    stop: Callable[[Letter], PoisonError] = poison
    progress: FoldProgress = field(default_factory=FoldProgress)
    found: list[Letter] = field(default_factory=list)
    skipped: int = 0

    def add(self, computation: str, reason: str | BaseException, place: int) -> None:
        """Notes that a message could not be processed. Raises what `stop` makes when the computation says so."""
        self._refuse(self.on_error.get(computation, DEAD_LETTER), computation, reason, place)

    def add_decided(self, computation: str, reason: str, place: int) -> None:
        """The same, of a message that was gone on from before: it stops nothing, whatever the computation says now."""
        policy = self.on_error.get(computation, DEAD_LETTER)
        self._refuse(DEAD_LETTER if policy == STOP else policy, computation, reason, place)

    def _refuse(self, policy: OnError, computation: str, reason: str | BaseException, place: int) -> None:
        if policy == SKIP:
            self.skipped += 1
            return
        text = reason if isinstance(reason, str) else f"{type(reason).__name__}: {reason}"
        letter = Letter(computation, reason_text(text), place)
        if policy == STOP:
            raise self.stop(letter)
        self.found.append(letter)

    def in_order(self) -> list[Letter]:
        """The dead letters by message, so that their order does not depend on how messages were cut into frames."""
        return sorted(self.found, key=lambda letter: letter.place)
