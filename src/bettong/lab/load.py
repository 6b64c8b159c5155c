"""What a run is fed, by a user's module, and when each frame is due.

A load comes in rounds. The parts of a round go side by side, each in a stream of its own; a round is durable before the
next begins, so that a model knows in which order the log has them. A load whose order does not matter is one round.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Protocol, runtime_checkable

import numpy as np
import pyarrow as pa

from bettong.errors import BettongError, SettingsError
from bettong.lab.spec import LoadStep

_MODULE = "bettong_lab_load"
# The columns of a source that reads a topic.
VALUE, PARTITION = "value", "partition"


@dataclass(frozen=True, slots=True)
class LoadPart:
    """Messages of a source, as columns by field, numpy's or Arrow's, in the order of sending.

    Where the source reads a topic: VALUE, an array of bytes objects, and PARTITION, whole numbers that are taken modulo
    the topic's partitions; without it they take turns.
    """

    source: str
    columns: Mapping[str, np.ndarray | pa.Array]

    @property
    def messages(self) -> int:
        """How many they are."""
        return len(next(iter(self.columns.values())))

    def slice(self, start: int, stop: int) -> LoadPart:
        """Some of them."""
        return LoadPart(self.source, {name: column[start:stop] for name, column in self.columns.items()})


class SinkResults(bytes):
    """All bytes of a sink's results, as they came; `each`: one by one."""

    each: Sequence[bytes]

    @classmethod
    def of(cls, results: Sequence[bytes]) -> SinkResults:
        """These."""
        made = cls(b"".join(results))
        made.each = results
        return made


@runtime_checkable
class LabLoad(Protocol):
    """The same each time that it is made with the same messages and seed."""

    def first(self) -> Sequence[LoadPart]:
        """What is folded before the clock starts; may be nothing."""

    def rounds(self) -> Iterator[Sequence[LoadPart]]:
        """All that is timed."""

    def result_bytes(self) -> Mapping[str, int]:
        """How many bytes of results come out, by sink; a sink that is not named is not waited for."""

    def wrong(self, results: Mapping[str, SinkResults]) -> str:
        """What is wrong with the results of each sink, in a line; "" when nothing is."""


@runtime_checkable
class TopicLoad(LabLoad, Protocol):
    """Of an application that writes results into a topic, where a record does not say when it was due."""

    def message_of(self, result: bytes) -> int:
        """The number of the message that a result is of, counted from 0 as all are sent; -1: of what came first."""


@dataclass(frozen=True, slots=True)
class DueFrame:
    """Some messages of a part of a round.

    `due_s`: after the beginning, or 0 where it is as fast as it goes. `ends_round`: durable before the next one.
    """

    whole: LoadPart
    start: int
    stop: int
    due_s: float
    step: int
    ends_round: bool

    @property
    def source(self) -> str:
        """Whose they are."""
        return self.whole.source

    @property
    def part(self) -> LoadPart:
        """They alone: cut out here, so that a process does not cut out what another one sends."""
        return self.whole.slice(self.start, self.stop)


class Pace:
    """When the nth message is due, by steps that follow each other."""

    def __init__(self, steps: Sequence[LoadStep]) -> None:
        self._steps = steps
        self._begun_s = [0.0, *accumulate(step.seconds for step in steps)]
        self._sent = [0, *accumulate(step.messages for step in steps)]

    @property
    def messages(self) -> int:
        """Of all steps."""
        return self._sent[-1]

    def step_of(self, number: int) -> int:
        """Of the message, which counts from 0; never one that has none, where another has."""
        if not self._steps:
            return 0
        return next(
            (index for index, last in enumerate(self._sent[1:]) if number < last), len(self._steps) - 1
        )

    def due_s(self, number: int) -> float:
        """When it is due, after the beginning; before it, what came before the first message."""
        if number < 0:
            return -math.inf
        step = self.step_of(number)
        rate = self._steps[step].messages_per_s if self._steps else 0.0
        return self._begun_s[step] + ((number - self._sent[step]) / rate if rate else 0.0)


def due_frames(rounds: Iterator[Sequence[LoadPart]], frame_messages: int, pace: Pace) -> Iterator[DueFrame]:
    """The parts of each round in frames, in turns, each with when its first message is due.

    All parts end together: frames of the longest one have `frame_messages`, those of others fewer, in proportion.
    """
    sent = 0
    for parts in rounds:
        longest = max((part.messages for part in parts), default=0)
        end = sent + sum(part.messages for part in parts)
        for start in range(0, longest, frame_messages):
            stop = min(start + frame_messages, longest)
            for part in parts:
                first, behind = (at * part.messages // longest for at in (start, stop))
                if first < behind:
                    due = pace.due_s(sent), pace.step_of(sent)
                    sent += behind - first
                    yield DueFrame(part, first, behind, *due, ends_round=sent == end)


def make_load(path: str, messages: int, seed: int) -> LabLoad:
    """Of the function `load(messages, seed)` of a Python file. Raises SettingsError that names the file."""
    file = Path(path)
    spec = importlib.util.spec_from_file_location(_MODULE, file)
    if not file.is_file() or spec is None or spec.loader is None:
        raise SettingsError(f"load: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    # What it imports lies beside it, or below the working directory, from which run files name their parts.
    found_in = [str(file.resolve().parent), str(Path.cwd())]
    sys.path[:0] = found_in
    try:
        spec.loader.exec_module(module)
        load = module.load(messages, seed)
    except BettongError:
        raise
    except Exception as error:
        raise SettingsError(
            f"load: {path} cannot be used: {type(error).__name__}: {error}; it needs a function load(messages, seed)"
        ) from error
    finally:
        for each in found_in:
            sys.path.remove(each)
    if not isinstance(load, LabLoad):
        raise SettingsError(
            f"load: {path}: load() gave a {type(load).__name__}, without first, rounds, result_bytes and wrong"
        )
    return load
