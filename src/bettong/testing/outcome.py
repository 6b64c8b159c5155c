"""The outcome of a test, and how two outcomes differ."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from bettong.testing.source_text import text_of_value
from bettong.worker.balance import Balance, differences

# Counters that must not depend on how an application runs. Frames, duplicates and gaps do; and so do deleted keys: the
# message that closes a key's last window may be in one frame with the key's next message, which keeps it.
_COUNTED = ("messages", "results", "dead_letters", "skipped", "late", "partly_late", "expired")
# How many messages `Stream.local` combines depends on the frames.
_COUNTED_OF_COMBINED = _COUNTED[2:]
_SHOWN_MAX = 10


@dataclass(frozen=True, slots=True)
class DeadMessage:
    """A message that a computation, source or sink could not process. `message`: as dead letters show it.

    `traceback`: where your function raised, as `file:line in function`, the innermost last; it is not compared,
    because compiled functions have none.
    """

    computation: str
    reason: str
    message: str
    traceback: tuple[str, ...] = field(default=(), compare=False)


@dataclass(frozen=True, slots=True)
class PendingTimer:
    """A timer that is set and has not fired: of a state, or of the windows of a key."""

    computation: str
    key: Any
    field: str
    at: int


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of all inputs until now.

    `outputs`: by sink, the messages that it delivers, or the bytes of its encoder, in the order in which they came.
    `states`: by computation and key, as JSON can hold them. `counters`: of all partitions; see `docs/metrics.md`.
    `stopped`: why a partition has stopped, by on_error="stop"; later results are not included.
    `combines`: whether the application combines messages before they pass a log: see `Stream.local`. `accounts`: what
    became of messages at each point of each stage, as `bettong status --accounts` shows it; none once it stopped.
    """

    outputs: Mapping[str, list[Any]]
    dead_letters: list[DeadMessage]
    states: Mapping[str, Mapping[Any, Any]]
    timers: list[PendingTimer]
    counters: Mapping[str, int]
    stopped: str | None = None
    combines: bool = False
    accounts: Sequence[Balance] = ()

    @property
    def late(self) -> int:
        """How many messages came after all of their windows were over. A sink of `.late` has those of late="side"."""
        return self.counters["late"]

    @property
    def partly_late(self) -> int:
        """How many messages came after some of their windows were over."""
        return self.counters["partly_late"]


def assert_alike(found: Outcome, expected: Outcome) -> None:
    """Raises AssertionError where two outcomes differ in more than order, which is not guaranteed between keys."""
    if (difference := difference_of(found, expected)) is not None:
        raise AssertionError(difference)


def difference_of(found: Outcome, expected: Outcome) -> str | None:
    """The differences, as text; None when there are none."""
    lines = list(_differences(found, expected))
    return "\n".join(lines) if lines else None


def _differences(found: Outcome, expected: Outcome) -> Iterator[str]:
    if found.stopped is not None and expected.stopped is not None:
        return  # other partitions had progressed by chance
    if found.stopped != expected.stopped:
        yield f"stopped: {found.stopped or 'no'}, expected: {expected.stopped or 'no'}"
        return
    for sink, results in expected.outputs.items():
        yield from _of_texts(f"sink {sink!r}", _texts(found.outputs[sink]), _texts(results))
    yield from _of_texts("dead letters", _dead(found), _dead(expected))
    for computation in expected.states:
        own, others = (_states(each, computation) for each in (found, expected))
        yield from _of_texts(f"states of {computation!r}", own, others)
    timers, others = (Counter(map(text_of_value, each.timers)) for each in (found, expected))
    yield from _of_texts("timers that are set", timers, others)
    yield from (f"accounts: {line}" for line in differences(found.accounts))
    for name in _COUNTED_OF_COMBINED if expected.combines else _COUNTED:
        if found.counters[name] != expected.counters[name]:
            yield f"counted {name}: {found.counters[name]}, expected: {expected.counters[name]}"


def _of_texts(what: str, found: Counter[str], expected: Counter[str]) -> Iterator[str]:
    missing, more = expected - found, found - expected
    if missing or more:
        yield f"{what}: {found.total()}, expected: {expected.total()}"
        yield from _listed("-", missing, "expected")
        yield from _listed("+", more, "found")


def _listed(sign: str, texts: Counter[str], what: str) -> Iterator[str]:
    shown = list(texts.elements())
    for text in shown[:_SHOWN_MAX]:
        yield f"  {sign} {text}    ({what})"
    if len(shown) > _SHOWN_MAX:
        yield f"  {sign} and {len(shown) - _SHOWN_MAX} more"


def _texts(results: list[Any]) -> Counter[str]:
    return Counter(map(text_of_value, results))


def _dead(outcome: Outcome) -> Counter[str]:
    # Compiled functions may word a reason in another way.
    return Counter(f"{each.computation}: {each.message}" for each in outcome.dead_letters)


def _states(outcome: Outcome, computation: str) -> Counter[str]:
    return Counter(f"{key!r}: {state!r}" for key, state in outcome.states[computation].items())
