"""The load of a run, made by a user's module, and when each of its frames is due.

A load is a sequence of rounds. The parts of a round are sent side by side, each in a stream of its own. A round is
durable before the next begins, so that a model knows the order of rounds in the log. If order does not matter, one
round is enough.
"""

from __future__ import annotations

import importlib.util
import math
import sys
from bisect import bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass
from functools import partial
from itertools import accumulate
from pathlib import Path
from typing import Any, Protocol, TypeVar, runtime_checkable

import numpy as np
import pyarrow as pa

from bettong.errors import BettongError, SettingsError
from bettong.immutable import immutable
from bettong.lab.spec import LoadStep
from bettong.user_errors import reason_of

Result = TypeVar("Result")

_MODULE = "bettong_lab_load"
# The columns of a source that reads a topic.
VALUE, PARTITION = "value", "partition"


@dataclass(frozen=True, slots=True)
class LoadPart:
    """Messages of one source in sending order, as columns by field, of numpy or Arrow.

    For a source that reads a topic: VALUE, an array of bytes objects, and PARTITION, integers that are taken modulo
    the number of partitions; without PARTITION records go to the partitions in turn.
    """

    source: str
    columns: Mapping[str, np.ndarray | pa.Array]

    @property
    def messages(self) -> int:
        """The number of messages."""
        return len(next(iter(self.columns.values())))

    def slice(self, start: int, stop: int) -> LoadPart:
        """The messages from `start` up to, not including, `stop`."""
        return LoadPart(self.source, {name: column[start:stop] for name, column in self.columns.items()})


class SinkResults(bytes):
    """The results of a sink, joined in order of arrival; `each`: one by one."""

    each: Sequence[bytes]

    @classmethod
    def of(cls, results: Sequence[bytes]) -> SinkResults:
        """Joins these results."""
        made = cls(b"".join(results))
        made.each = results
        return made


@runtime_checkable
class LabLoad(Protocol):
    """A load. It must be the same each time that it is made with the same messages and seed."""

    def first(self) -> Sequence[LoadPart]:
        """What is processed before the clock starts; may be empty."""

    def rounds(self) -> Iterator[Sequence[LoadPart]]:
        """The messages that are timed."""

    def result_bytes(self) -> Mapping[str, int]:
        """How many bytes of results each sink must deliver; a sink that is not named is not awaited."""

    def wrong(self, results: Mapping[str, SinkResults]) -> str:
        """What is wrong with the results of the sinks, in one line; "" if nothing is."""


@runtime_checkable
class TopicLoad(LabLoad, Protocol):
    """A load for an application that writes into a topic, whose records do not say when their message was due."""

    def message_of(self, result: bytes) -> int:
        """The number of the message that led to a result, counted from 0 as sent; -1 for messages of `first()`."""


@immutable()
class DueFrame:
    """Consecutive messages of one part of a round.

    `due_s`: after the beginning; 0 at full speed. `ends_round`: its round is durable before the next is sent.
    """

    whole: LoadPart
    start: int
    stop: int
    due_s: float
    step: int
    ends_round: bool

    @property
    def source(self) -> str:
        """The source that gets the messages."""
        return self.whole.source

    @property
    def part(self) -> LoadPart:
        """The messages. Sliced only here, so that a process does not slice frames that another one sends."""
        return self.whole.slice(self.start, self.stop)


class Pace:
    """When the nth message is due, by steps of constant rates that follow each other."""

    def __init__(self, steps: Sequence[LoadStep]) -> None:
        self._steps = steps
        self._begun_s = [0.0, *accumulate(step.seconds for step in steps)]
        self._sent = [0, *accumulate(step.messages for step in steps)]

    @property
    def messages(self) -> int:
        """The number of messages in all steps."""
        return self._sent[-1]

    def step_of(self, number: int) -> int:
        """The step of a message, which counts from 0; a step without messages only if none has any."""
        # The first of the steps that end behind the message.
        return max(0, min(bisect_right(self._sent, number, lo=1), len(self._steps)) - 1)

    def due_s(self, number: int) -> float:
        """When a message is due, after the beginning; -inf for messages of `first()`, which have negative numbers."""
        if number < 0:
            return -math.inf
        step = self.step_of(number)
        rate = self._steps[step].messages_per_s if self._steps else 0.0
        return self._begun_s[step] + ((number - self._sent[step]) / rate if rate else 0.0)


def due_frames(rounds: Iterator[Sequence[LoadPart]], frame_messages: int, pace: Pace) -> Iterator[DueFrame]:
    """Cuts the parts of each round into frames, which take turns, each with the time when its first message is due.

    All parts of a round end together: frames of the longest have `frame_messages`, those of others proportionally less.
    """
    sent = 0
    for parts in rounds:
        sizes = [part.messages for part in parts]
        longest = max(sizes, default=0)
        end = sent + sum(sizes)
        for start in range(0, longest, frame_messages):
            stop = min(start + frame_messages, longest)
            for part, size in zip(parts, sizes, strict=True):
                part_start, part_stop = start * size // longest, stop * size // longest
                if part_start < part_stop:
                    due = pace.due_s(sent), pace.step_of(sent)
                    sent += part_stop - part_start
                    yield DueFrame(part, part_start, part_stop, *due, ends_round=sent == end)


def make_load(path: str, messages: int, seed: int) -> LabLoad:
    """Calls `load(messages, seed)` of a Python file.

    Raises SettingsError that names the file; so do the methods of what it returns, whatever the file's code raises.
    """
    file = Path(path)
    spec = importlib.util.spec_from_file_location(_MODULE, file)
    if not file.is_file() or spec is None or spec.loader is None:
        raise SettingsError(f"load: {path} is no Python file")
    module = importlib.util.module_from_spec(spec)
    # The module imports what lies beside it, or in the working directory, to which paths in run files are relative.
    found_in = [str(file.resolve().parent), str(Path.cwd())]
    sys.path[:0] = found_in
    try:
        _call(path, spec.loader.exec_module, module)
        if not hasattr(module, "load"):
            raise SettingsError(f"load: {path} needs a function load(messages, seed)")
        load = _call(path, module.load, messages, seed)
    finally:
        for each in found_in:
            sys.path.remove(each)
    if not isinstance(load, LabLoad):
        raise SettingsError(
            f"load: {path}: load() returned a {type(load).__name__}, without first, rounds, result_bytes and wrong"
        )
    return _FileTopicLoad(path, load) if isinstance(load, TopicLoad) else _FileLoad(path, load)


def _call(path: str, function: Callable[..., Result], *arguments: Any) -> Result:
    """Calls a function of a load's file. What it prints goes to stderr: a command's output may be JSON.

    Raises SettingsError for whatever it raises, and for an exit.
    """
    try:
        with redirect_stdout(sys.stderr):
            return function(*arguments)
    except BettongError:
        raise
    except (Exception, SystemExit) as error:
        reason = reason_of(error)
        where = f", {reason.traceback[-1]}" if reason.traceback else ""
        raise SettingsError(f"load: {path}{where}: {reason}") from error


class _FileLoad:
    """The load of a file, whose errors name it. See LabLoad."""

    def __init__(self, path: str, load: LabLoad) -> None:
        self._load, self._called = load, partial(_call, path)

    def first(self) -> Sequence[LoadPart]:
        return self._called(self._load.first)

    def rounds(self) -> Iterator[Sequence[LoadPart]]:
        rounds = iter(self._called(self._load.rounds))
        while (parts := self._called(next, rounds, None)) is not None:
            yield parts

    def result_bytes(self) -> Mapping[str, int]:
        return self._called(self._load.result_bytes)

    def wrong(self, results: Mapping[str, SinkResults]) -> str:
        return self._called(self._load.wrong, results)


class _FileTopicLoad(_FileLoad):
    """See TopicLoad."""

    def __init__(self, path: str, load: TopicLoad) -> None:
        super().__init__(path, load)
        self._message_of = load.message_of

    def message_of(self, result: bytes) -> int:
        return self._called(self._message_of, result)
