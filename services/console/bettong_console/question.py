"""What a page may ask that takes time to find out, and that users' code takes part in."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeyQuestion:
    """What happened to a key? `stage`: "" where there is one alone; `whole`: from the beginning of the log."""

    stage: str
    key: str
    whole: bool


@dataclass(frozen=True, slots=True)
class DeadLettersQuestion:
    """Which messages could not be processed? `computation`: "" stands for all."""

    computation: str


Question = KeyQuestion | DeadLettersQuestion
