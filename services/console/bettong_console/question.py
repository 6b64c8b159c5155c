"""What a page may ask that takes time to find out, or to do, and that users' code takes part in."""

from dataclasses import dataclass

from bettong.frames.dead_letter_id import DeadLetterId


@dataclass(frozen=True, slots=True)
class KeyQuestion:
    """What happened to a key? `stage`: "" where there is one alone; `whole`: from the beginning of the log."""

    stage: str
    key: str
    whole: bool


@dataclass(frozen=True, slots=True)
class CaseQuestion:
    """A test of what clients have sent of a key. `stage`: "" where there is one alone."""

    stage: str
    key: str


@dataclass(frozen=True, slots=True)
class DeadLettersQuestion:
    """Which messages could not be processed? `computation`: "" stands for all."""

    computation: str


@dataclass(frozen=True, slots=True)
class RetryQuestion:
    """Send dead letters to their sources again: these, or with `ids` empty all of `computation` ("": of all).

    `dry_run`: only say what would be done.
    """

    ids: tuple[DeadLetterId, ...]
    computation: str
    dry_run: bool


@dataclass(frozen=True, slots=True)
class ScaleQuestion:
    """Set the number of workers of a release of the chart. None: only say how many there are, and `dry_run`."""

    release: str
    workers: int | None
    dry_run: bool


@dataclass(frozen=True, slots=True)
class ResetQuestion:
    """Delete all snapshots, so that the next start folds every state from the beginning of the log again."""

    dry_run: bool


ChangeQuestion = RetryQuestion | ScaleQuestion | ResetQuestion
Question = KeyQuestion | CaseQuestion | DeadLettersQuestion | ChangeQuestion
