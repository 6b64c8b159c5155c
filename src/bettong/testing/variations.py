"""Variations of a case that must make no difference: frames, partitions, speeds, crashes, repetitions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import cycle
from random import Random

from bettong.testing.inputs import CRASH, RESEND, RESTORE, SAVE, ClientFrame, Moment, Step
from bettong.testing.memory_processor import AtEachRecord

PARTITIONS = (2, 3, 4, 5)
# Random divisions of messages into frames, besides one message per frame and as many as possible.
RANDOM_FRAMES = 3


@dataclass(frozen=True, slots=True)
class Variation:
    """A variation in which a case is run; the default is the plainest: each message in its own frame.

    `what`: what results would depend on. `joined`: by input, whether its messages join the frame before it, if that is
    of the same client. `between`: what happens after each frame, in turn.
    """

    what: str
    joined: tuple[bool, ...] = ()
    between: tuple[Moment, ...] = ()
    partitions: int = 1
    compiled: bool = False
    at_each_record: AtEachRecord | None = None

    def inputs(self, case: Sequence[Step]) -> list[Step]:
        """The inputs of a case of one message per frame, varied."""
        found: list[Step] = []
        for number, step in enumerate(case):
            joins = number < len(self.joined) and self.joined[number] and found
            shared = shared_frame(found[-1], step) if joins else None
            if shared is None:
                found.append(step)
            else:
                found[-1] = shared
        if not self.between:
            return found
        moments = cycle(self.between)
        return [
            each
            for step in found
            for each in ((step, next(moments)) if isinstance(step, ClientFrame) else (step,))
        ]


def one_message_a_frame(steps: Sequence[Step]) -> list[Step]:
    """A case whose frames have one message each."""
    return [
        single
        for step in steps
        for single in (
            [replace(step, messages=(message,)) for message in step.messages]
            if isinstance(step, ClientFrame)
            else [step]
        )
    ]


def variations(case: Sequence[Step], *, has_compiled: bool) -> Iterator[Variation]:
    """All variations of a case of one message per frame, those first that people think of last."""
    everywhere = (True,) * len(case)
    yield Variation("which run it is: the same case, run twice, has two results")
    crash = "crashes and restarts"
    for at_each_record in (AtEachRecord.CRASH, AtEachRecord.RESTORE, AtEachRecord.SAVE):
        yield Variation(crash, at_each_record=at_each_record)
    for between in ((CRASH,), (RESTORE, CRASH), (CRASH, RESTORE, CRASH), (SAVE, SAVE, CRASH)):
        yield Variation(crash, between=between)
    repeats = "repetitions: frames that come twice"
    yield Variation(repeats, at_each_record=AtEachRecord.TWICE)
    for partitions in (1, 3):
        yield Variation(repeats, between=(RESEND,), partitions=partitions)
    frames = "how messages are divided into frames"
    yield Variation(frames, joined=everywhere)
    chance = Random(len(case))  # noqa: S311 - the same for the same case
    for _ in range(RANDOM_FRAMES):
        yield Variation(frames, joined=tuple(chance.random() < 0.5 for _ in case))
    for partitions in PARTITIONS:
        yield Variation("the number of partitions", partitions=partitions)
    for partitions in (3, 5):
        yield Variation("the number of partitions, and frames", joined=everywhere, partitions=partitions)
    if has_compiled:
        speed = "whether functions are compiled"
        yield Variation(speed, compiled=True)
        yield Variation(speed, compiled=True, joined=everywhere, partitions=3)
        yield Variation(speed, compiled=True, between=(RESTORE, CRASH))


def shared_frame(last: Step, step: Step) -> ClientFrame | None:
    """The messages of both in one frame; None where no client may send them together."""
    if not isinstance(last, ClientFrame) or not isinstance(step, ClientFrame):
        return None
    messages = (*last.messages, *step.messages)
    same = (last.source, last.client) == (step.source, step.client)
    alike = len({isinstance(message, bytes) for message in messages}) == 1
    return replace(last, messages=messages) if same and alike else None
