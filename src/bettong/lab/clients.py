"""The client processes of a run: they send each frame when it is due, even if the one before was sent late.

Each process makes the whole load, and sends only the sources that are assigned to it. All begin at one time, and wait
for each other at the end of each round.
"""

from __future__ import annotations

import multiprocessing
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from itertools import chain
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnContext
from multiprocessing.synchronize import Barrier
from threading import BrokenBarrierError

from bettong.client.sender import Sender
from bettong.errors import BettongError, ClientError, LabError, LateError, RefusedError, SettingsError
from bettong.lab.load import DueFrame, Pace, due_frames
from bettong.lab.spec import RunSpec
from bettong.lab.table_load import load_of
from bettong.lab.target.topics import RunTopics, TopicFeed

_READY_S_MAX = 120.0
_DURABLE_S_MAX = 300.0
_STOP_S_MAX = 5.0
_HEAD_START_S = 0.5
# How often the target is checked while clients send.
_CHECK_EVERY_S = 5.0
# What a process reports that waited in vain for the others at the end of a round.
_ROUND_BROKEN = "another one failed, or was not done with a round in time"


@dataclass(frozen=True, slots=True)
class ClientTask:
    """What one client process sends. `target`: the sender's address. `topics`: for sources that read a topic."""

    spec: RunSpec
    target: str
    topics: RunTopics | None
    index: int

    @property
    def frame_messages(self) -> int:
        """The size of a frame: 1 at a rate if a source or a sink is a topic.

        A record is sent when it is due; and a result in a topic has the latency of its own message, not of a frame's.
        """
        single = (
            self.topics is not None and (self.topics.of_sources or self.topics.of_sinks) and self.spec.steps
        )
        return 1 if single else self.spec.frame_messages


class _Feeds:
    """The feeds of one process. Sources are assigned to processes in turn, in the order in which they first appear."""

    def __init__(self, task: ClientTask, opened: ExitStack) -> None:
        self._task, self._opened = task, opened
        self._feeds: dict[str, Sender | TopicFeed | None] = {}

    def feed_of(self, source: str) -> Sender | TopicFeed | None:
        """The feed of a source, opened at the first call; None if another process feeds the source."""
        task = self._task
        if source not in self._feeds:
            self._feeds[source] = None
            if (len(self._feeds) - 1) % task.spec.processes == task.index:
                feed = open_feed(source, task.target, task.topics)
                self._opened.enter_context(feed)
                self._feeds[source] = feed
        return self._feeds[source]

    def flush(self) -> None:
        """Blocks until all that this process has sent is durable."""
        for feed in self._feeds.values():
            if feed is not None:
                feed.flush(_DURABLE_S_MAX)


class _Late(str):
    """Why a client failed that waited in vain for the sender: at a lower rate it might not."""

    __slots__ = ()


class Clients:
    """The client processes of a run; made by `clients`."""

    def __init__(self, processes: list[tuple[multiprocessing.process.BaseProcess, Connection]]) -> None:
        self._processes = processes

    def begin(self) -> float:
        """Starts all at one time, and returns that: Unix time.

        Raises LabError when a process failed, SettingsError when one has not made the load in time.
        """
        if late := self._await_all(_READY_S_MAX):
            raise SettingsError(
                f"client process {late} of {len(self._processes)} has not made the load after {_READY_S_MAX:.0f} s:"
                " take fewer messages, or a lower rate"
            )
        begin_s = time.time() + _HEAD_START_S
        for _, pipe in self._processes:
            with suppress(ConnectionError):  # it has died: `finish` names it
                pipe.send(begin_s)
        return begin_s

    def finish(self, seconds: float, check: Callable[[], None] = lambda: None) -> None:
        """Waits until all that they sent is durable. `check`: called meanwhile; may raise.

        Raises LabError when a process failed, LateError when one is not done in time.
        """
        seconds += _DURABLE_S_MAX
        if late := self._await_all(seconds, check):
            raise LateError(
                f"client process {late} of {len(self._processes)} failed: no answer for {seconds:.0f} s"
            )

    def _await_all(self, seconds: float, check: Callable[[], None] = lambda: None) -> int:
        """Waits until all have reported; returns 0, or the number of one that has not in time.

        Raises LabError as soon as one has failed, whichever it is.
        """
        deadline = time.monotonic() + seconds
        numbers = {pipe: number for number, (_, pipe) in enumerate(self._processes, 1)}
        is_round_broken = False
        while numbers:
            left_s = max(0.0, deadline - time.monotonic())
            reported = wait(list(numbers), min(left_s, _CHECK_EVERY_S))
            check()
            if not reported and not left_s:
                return min(numbers.values())
            for pipe in reported:
                assert isinstance(pipe, Connection)  # noqa: S101 - only these are waited for
                number, error = numbers.pop(pipe), _answer(pipe)
                if error == _ROUND_BROKEN:
                    is_round_broken = True  # the others tell by which of them
                elif error:
                    raise self._failure(number, error)
        if is_round_broken:
            raise LabError(f"a client process failed: {_ROUND_BROKEN}")
        return 0

    def _failure(self, number: int, error: str) -> LabError:
        kind = LateError if isinstance(error, _Late) else LabError
        return kind(f"client process {number} of {len(self._processes)} failed: {error}")


def _answer(pipe: Connection) -> str:
    """What a process has reported: "", or why it failed."""
    try:
        answer: str = pipe.recv()
    except (EOFError, ConnectionError):
        return "it ended without reporting an error; its output above may hold one"
    return answer


@contextmanager
def clients(spec: RunSpec, target: str, topics: RunTopics | None) -> Iterator[Clients]:
    """Starts the processes; terminates those that still run when the context exits."""
    context = multiprocessing.get_context("spawn")
    barrier = context.Barrier(spec.processes)
    started = [
        _start(context, ClientTask(spec, target, topics, index), barrier) for index in range(spec.processes)
    ]
    try:
        yield Clients(started)
    finally:
        for process, pipe in started:
            process.terminate()
            process.join(_STOP_S_MAX)
            if process.is_alive():
                process.kill()
            pipe.close()


def open_feed(source: str, target: str, topics: RunTopics | None) -> Sender | TopicFeed:
    """The feed of a source: its topic if it reads one, else the sender."""
    if topics is not None and source in topics.of_sources:
        return TopicFeed(topics, source)
    return Sender(target, source)


def _start(
    context: SpawnContext, task: ClientTask, barrier: Barrier
) -> tuple[multiprocessing.process.BaseProcess, Connection]:
    ours, theirs = context.Pipe()
    process = context.Process(
        target=_run_client, args=(task, barrier, theirs), name=f"lab-client-{task.index}", daemon=True
    )
    # Inherited: Ctrl-C, which reaches all of a terminal's processes, is for the lab alone, which ends its clients.
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        process.start()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    theirs.close()
    return process, ours


def _run_client(task: ClientTask, barrier: Barrier, pipe: Connection) -> None:
    """Runs in a client process. Reports "" when it is ready and when all is durable; else what went wrong."""
    try:
        _send_all(task, barrier, pipe)
        pipe.send("")
    except BettongError as error:
        barrier.abort()
        is_late = isinstance(error, ClientError) and not isinstance(error, RefusedError)
        pipe.send(_Late(error) if is_late else str(error))
    except BaseException:  # whatever it is, the others must not wait
        barrier.abort()
        raise


def _send_all(task: ClientTask, barrier: Barrier, pipe: Connection) -> None:
    """Reports that it is ready, waits for the begin, and sends what is assigned to this process."""
    pace = Pace(task.spec.steps)
    rounds = load_of(task.spec).rounds()
    first = next(rounds, [])
    frames = due_frames(chain([first], rounds), task.frame_messages, pace)
    with ExitStack() as opened:
        feeds = _Feeds(task, opened)
        for part in first:
            if part.messages:  # all feeds are open before any sends, so that event time waits for each
                feeds.feed_of(part.source)
        frame = next(frames, None)
        pipe.send("")
        begin_s = pipe.recv()
        while frame is not None:
            feed = feeds.feed_of(frame.source)
            if feed is not None:
                _send_when_due(feed, frame, begin_s, paced=bool(task.spec.steps))
            if frame.ends_round:
                _end_round(feeds, barrier, task.spec.sending_s_max + _DURABLE_S_MAX)
            frame = next(frames, None)


def _send_when_due(feed: Sender | TopicFeed, frame: DueFrame, begin_s: float, *, paced: bool) -> None:
    due_s = begin_s + frame.due_s
    early_s = due_s - time.time()
    if early_s > 0:  # a sleep of 0 s takes 60 us, too
        time.sleep(early_s)
    feed.send_columns(dict(frame.part.columns), sent_ns=int(due_s * 1e9) if paced else None)


def _end_round(feeds: _Feeds, barrier: Barrier, wait_s: float) -> None:
    """Waits for the other processes: one without a source is here at once, long before those that send."""
    feeds.flush()
    try:
        barrier.wait(wait_s)
    except BrokenBarrierError:
        raise LabError(_ROUND_BROKEN) from None
