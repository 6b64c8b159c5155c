"""The client's side of a run: processes that send a load, each frame when it is due, however late the one before was.

Each process makes the whole load, and sends the streams that are its own. All begin at one time, and wait for each
other where a round ends.
"""

from __future__ import annotations

import multiprocessing
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from itertools import chain
from multiprocessing.connection import Connection
from multiprocessing.context import SpawnContext
from multiprocessing.synchronize import Barrier

from bettong.client.sender import Sender
from bettong.errors import BettongError, LabError
from bettong.lab.load import DueFrame, Pace, due_frames
from bettong.lab.spec import RunSpec
from bettong.lab.table_load import load_of
from bettong.lab.target.topics import RunTopics, TopicFeed

_READY_S_MAX = 120.0
_DURABLE_S_MAX = 300.0
_STOP_S_MAX = 5.0
_HEAD_START_S = 0.5


@dataclass(frozen=True, slots=True)
class ClientTask:
    """What one process sends, and where to. `target`: the sender. `topics`: where the application reads any."""

    spec: RunSpec
    target: str
    topics: RunTopics | None
    index: int

    @property
    def frame_messages(self) -> int:
        """Of one frame. Into a topic, where there is a rate, each message goes when it is due itself."""
        alone = self.topics is not None and self.topics.of_sources and self.spec.steps
        return 1 if alone else self.spec.frame_messages


class _Feeds:
    """What a process feeds: sources are shared out among all processes, in the order in which they come."""

    def __init__(self, task: ClientTask, opened: ExitStack) -> None:
        self._task, self._opened = task, opened
        self._feeds: dict[str, Sender | TopicFeed | None] = {}

    def of(self, source: str) -> Sender | TopicFeed | None:
        """That of a source, opened at its first call; None for a source of another process."""
        task = self._task
        if source not in self._feeds:
            self._feeds[source] = None
            if (len(self._feeds) - 1) % task.spec.processes == task.index:
                feed = open_feed(source, task.target, task.topics)
                self._opened.enter_context(feed)
                self._feeds[source] = feed
        return self._feeds[source]

    def flush(self) -> None:
        """Blocks until all is durable."""
        for feed in self._feeds.values():
            if feed is not None:
                feed.flush(_DURABLE_S_MAX)


class Clients:
    """The processes of a run; made by `clients`."""

    def __init__(self, processes: list[tuple[multiprocessing.process.BaseProcess, Connection]]) -> None:
        self._processes = processes

    def begin(self) -> float:
        """Lets all begin, and returns when they do: Unix time. Raises LabError when one is not ready in time."""
        for _, pipe in self._processes:
            self._receive(pipe, _READY_S_MAX)
        begin_s = time.time() + _HEAD_START_S
        for _, pipe in self._processes:
            pipe.send(begin_s)
        return begin_s

    def finish(self, seconds: float) -> None:
        """Waits until all that they sent is durable. Raises LabError when one failed, or is not done in time."""
        deadline = time.monotonic() + seconds + _DURABLE_S_MAX
        for _, pipe in self._processes:
            self._receive(pipe, deadline - time.monotonic())

    def _receive(self, pipe: Connection, seconds: float) -> None:
        try:
            said = pipe.recv() if pipe.poll(max(0.0, seconds)) else f"nothing heard of it for {seconds:.0f} s"
        except EOFError:
            said = "it ended without a word; its error stands above"
        if said:
            raise LabError(f"a client's process failed: {said}")


@contextmanager
def clients(spec: RunSpec, target: str, topics: RunTopics | None) -> Iterator[Clients]:
    """Starts the processes; ends those that still run when it is left."""
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
    """What feeds a source: its topic, where it reads one, or the sender."""
    if topics is not None and source in topics.of_sources:
        return TopicFeed(topics, source)
    return Sender(target, source)


def _start(
    context: SpawnContext, task: ClientTask, barrier: Barrier
) -> tuple[multiprocessing.process.BaseProcess, Connection]:
    ours, theirs = context.Pipe()
    process = context.Process(
        target=_work, args=(task, barrier, theirs), name=f"lab-client-{task.index}", daemon=True
    )
    process.start()
    theirs.close()
    return process, ours


def _work(task: ClientTask, barrier: Barrier, pipe: Connection) -> None:
    """In the process: says "" when it is ready, and when all is durable; or what went wrong."""
    try:
        pace = Pace(task.spec.steps)
        rounds = load_of(task.spec).rounds()
        first = next(rounds, [])
        frames = due_frames(chain([first], rounds), task.frame_messages, pace)
        with ExitStack() as opened:
            feeds = _Feeds(task, opened)
            for part in first:
                if part.messages:  # all are open before any is fed, so that event time waits for each
                    feeds.of(part.source)
            ahead = next(frames, None)
            pipe.send("")
            begin_s = pipe.recv()
            while ahead is not None:
                feed = feeds.of(ahead.source)
                if feed is not None:
                    _send(feed, ahead, begin_s, paced=bool(task.spec.steps))
                if ahead.ends_round:
                    _end_round(feeds, barrier)
                ahead = next(frames, None)
        pipe.send("")
    except BettongError as error:
        barrier.abort()
        pipe.send(str(error))


def _send(feed: Sender | TopicFeed, frame: DueFrame, begin_s: float, *, paced: bool) -> None:
    due_s = begin_s + frame.due_s
    early_s = due_s - time.time()
    if early_s > 0:  # a sleep of 0 s takes 60 us, too
        time.sleep(early_s)
    feed.send_columns(dict(frame.part.columns), sent_ns=int(due_s * 1e9) if paced else None)


def _end_round(feeds: _Feeds, barrier: Barrier) -> None:
    feeds.flush()
    try:
        barrier.wait(_DURABLE_S_MAX)
    except Exception as error:
        raise LabError("another client's process failed, or did not end its round in time") from error
