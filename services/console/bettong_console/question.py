"""Questions of a page that take time to answer or perform, and that run users' code."""

from dataclasses import dataclass

from bettong.frames.dead_letter_id import DeadLetterId


@dataclass(frozen=True, slots=True)
class KeyQuestion:
    """What happened to a key? `stage`: "" if there is only one; `whole`: from the beginning of the log."""

    stage: str
    key: str
    whole: bool


@dataclass(frozen=True, slots=True)
class CaseQuestion:
    """A test of the messages that clients have sent of a key. `stage`: "" if there is only one."""

    stage: str
    key: str


@dataclass(frozen=True, slots=True)
class DeadLettersQuestion:
    """Which messages could not be processed? `computation`: "" stands for all."""

    computation: str


@dataclass(frozen=True, slots=True)
class RetryQuestion:
    """Send dead letters to their sources again: these, or with `ids` empty all of `computation` ("": of all).

    `dry_run`: only report what would be done.
    """

    ids: tuple[DeadLetterId, ...]
    computation: str
    dry_run: bool


@dataclass(frozen=True, slots=True)
class ScaleQuestion:
    """Set the number of workers of a release of the chart. None, with `dry_run`: only report how many there are."""

    release: str
    workers: int | None
    dry_run: bool


@dataclass(frozen=True, slots=True)
class ResetQuestion:
    """Delete all snapshots, so that the next start folds every state again from the beginning of the log."""

    dry_run: bool


ChangeQuestion = RetryQuestion | ScaleQuestion | ResetQuestion
Question = KeyQuestion | CaseQuestion | DeadLettersQuestion | ChangeQuestion
