"""Dead letters of one frame: collected while its rows pass a stage."""

from dataclasses import dataclass, field

# Reasons are for people; a longer one (an exception that quotes its whole input) is cut.
REASON_CHARACTERS_MAX = 1000


@dataclass(frozen=True, slots=True)
class Letter:
    """Why `computation` could not process the message at `place` of the frame."""

    computation: str
    reason: str
    place: int


@dataclass(slots=True)
class Letters:
    """The dead letters of one frame, in the order in which they arose."""

    found: list[Letter] = field(default_factory=list)

    def add(self, computation: str, reason: str | BaseException, place: int) -> None:
        """Notes that a message could not be processed."""
        text = reason if isinstance(reason, str) else f"{type(reason).__name__}: {reason}"
        self.found.append(Letter(computation, text[:REASON_CHARACTERS_MAX], place))
