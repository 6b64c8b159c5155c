"""The intake: passes the frames of all feeds to the log. Knows the event loop, but nothing of gRPC or Kafka.

event loop     frames from clients, credits, receipts, answers: all state but that of `Session`
splitters      one thread a source, shared fairly by its feeds: parses, decodes and splits; then, one thread at a
               time, numbers and appends, so that the log is in the order of ingest times
log's thread   answers for every record, through `Answers`
"""

import asyncio
import contextlib
import math
import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial

from bettong.errors import LogError
from bettong.identifiers import TopicPartition
from bettong.ingest.refusal import Code, Refusal, exhausted, refused_by_log, unavailable
from bettong.ingest.session import Session, SourceRoute, Taken
from bettong.traces import NO_SAMPLING, FrameSampling
from bettong.v1.ingest_pb2 import Hello
from bettong_sender.answers import Answers, Log
from bettong_sender.buffer import FRAME_BYTES, RECORD_BYTES, Buffer
from bettong_sender.confirming import Appender, Confirming, RecordAnswer
from bettong_sender.feed import Feed, Number, OnDone, Outcome, Work
from bettong_sender.guards import Guards
from bettong_sender.ledger import Entry
from bettong_sender.refusal_log import RefusalLog
from bettong_sender.splitting import CLOSE_S_MAX, Splitter
from bettong_sender.splitting_progress import SplittingProgress
from bettong_sender.status import SenderStatus
from bettong_sender.ticker import Ticker
from bettong_sender.tracing import Answer, SenderTracing


@dataclass(frozen=True, slots=True)
class Limits:
    """The bounds of an intake; see `SenderSettings`."""

    credits: int
    sessions_max: int
    buffer_bytes_max: int


@dataclass(frozen=True, slots=True)
class _Piece:
    """A frame in the splitter's queue, where it counts as `size` bytes."""

    log: Log
    feed: "Feed"
    entry: Entry
    work: Work
    size: int
    on_done: OnDone


class Intake:
    """Routes, log, splitters and bounds, shared by all feeds. Made and used on the event loop."""

    def __init__(
        self,
        application: str,
        routes: Mapping[str, SourceRoute],
        limits: Limits,
        status: SenderStatus,
        *,
        clock: Callable[[], int],
        guards: Guards | None = None,
        tracing: SenderTracing | None = None,
    ) -> None:
        """`clock` returns Unix nanoseconds; ingest times never go back even if it does."""
        self.tracing = tracing
        self.refusal_log: RefusalLog | None = None  # None: failures of users' functions are not logged
        # See `LiveReport`; while it is None, external sources wait.
        self.listed_since_s: Callable[[], float | None] = lambda: -math.inf
        self.guards = guards or Guards(routes)
        self.routes = routes
        self.limits = limits
        self.status = status
        self.buffer = Buffer(limits.buffer_bytes_max)
        self.progress = SplittingProgress()
        self.ticker = Ticker()
        self._log: Log | None = None
        self._identities: Mapping[str, str] = {}
        self._generation = 0
        self._absence = "the sender starts"
        self._application = application
        self._clock = clock
        self._now_ns = 0
        self._numbering = threading.Lock()
        self._feeds: set[Feed] = set()
        self.clients: set[Feed] = set()  # those of them that clients opened
        self._empty = asyncio.Event()
        self._empty.set()
        self._loop = asyncio.get_running_loop()
        # The newest known offset of each stage's partitions: see Numbering.
        self._ends = {route.stage_topic: [-1] * route.partitions for route in routes.values()}
        self._answers: Answers[RecordAnswer] = Answers(self._loop, self._answered)
        self._confirming = Confirming(self._loop, self._confirmed)
        self._split_pieces: Answers[tuple[_Piece, Outcome]] = Answers(self._loop, self._piece_is_done)
        # A source whose decoder hangs fills only its own share of the buffer with unread frames.
        share = max(1, limits.buffer_bytes_max // max(1, len(routes)))
        self.splitters = {name: Splitter(name, share, self._split, self._was_split) for name in routes}

    def open(self, hello: Hello, client: str, sampling: FrameSampling = NO_SAMPLING) -> "Feed":
        """A new feed of a client. Raises Refusal. Close it when the call ends.

        `client`: splitters serve clients in turn. `sampling`: which frames the client traces itself.
        """
        route = self._route_of(hello)
        if len(self.clients) >= self.limits.sessions_max:
            raise exhausted(
                f"this sender serves {self.limits.sessions_max} sessions (BETTONG_SENDER_SESSIONS_MAX) and has no"
                " room for another; connect to another sender, or later"
            )
        feed = self._open(route, hello, client, sampling)
        self.clients.add(feed)
        self.status.sessions = len(self.clients)
        return feed

    def open_external(self, hello: Hello, title: str) -> "Feed":
        """A feed for a partition of an external system, by its title: it does not count as a client's session."""
        return self._open(self._route_of(hello), hello, title)

    def closed(self, feed: "Feed") -> None:
        """The call of a feed has ended."""
        self._feeds.discard(feed)
        self.clients.discard(feed)
        if feed.origin_progress is not None:
            self.ticker.close(feed.origin_progress)
        if not self._feeds:
            self._empty.set()
        self.status.sessions = len(self.clients)

    def use(
        self,
        log: Log,
        identities: Mapping[str, str],
        generation: int = 0,
        is_current: Callable[[], bool] = lambda: True,
    ) -> None:
        """Attaches a log. `identities` distinguish its topics from recreated ones of the same name.

        Feeds of a recreated topic end: their earlier records lie in the old one. All feeds end when `generation` has
        changed: their records no longer count. While `is_current()` is false, no acknowledgement of the log counts.
        """
        anew = {topic for topic, known in self._identities.items() if identities.get(topic) != known}
        if generation != self._generation:
            for feed in self._feeds:
                feed.fail(
                    unavailable(
                        f"application {self._application!r} was repartitioned; connect again and resend what has no"
                        " receipt"
                    )
                )
        self._log, self._identities, self._generation = log, identities, generation
        self._confirming.is_current = is_current
        for ends in self._ends.values():
            ends[:] = [-1] * len(ends)  # a topic of the same name may have begun anew
        for feed in self._feeds:
            for topic in anew.intersection((feed.route.stage_topic, feed.route.dead_letter_topic)):
                feed.fail(
                    unavailable(
                        f"topic {topic} was deleted and made anew; connect again and resend what has no receipt"
                    )
                )

    def log_of(self, route: SourceRoute) -> str:
        """The identity of a source's log, which differs once a topic was recreated."""
        return "/".join(self._identities[topic] for topic in (route.stage_topic, route.dead_letter_topic))

    def go_without(self, reason: str) -> None:
        """Detaches the log: each new session is refused with this reason."""
        self._log, self._absence = None, reason

    def hand_over(self, feed: "Feed", entry: Entry, work: Work, on_done: OnDone) -> None:
        """Queues `work` at the source's splitter, which appends the result, in the order of the feed's calls.

        `on_done` gets the outcome, on the loop. After a first outcome that is not Taken, all later work of the feed
        is skipped with the same outcome. Raises Refusal (UNAVAILABLE) when there is no log.
        """
        log = self._present_log()
        entry.size += FRAME_BYTES
        self._hold(entry.size)
        splitter = self.splitter_of(feed.route)
        splitter.waiting.add(entry.size)
        splitter.put(feed.client, feed, _Piece(log, feed, entry, work, entry.size, on_done))

    async def append(self, appender: Appender, entry: Entry, number: Number) -> Taken:
        """Appends records that no splitter made, such as TICKs. Raises Refusal (UNAVAILABLE).

        An append that has begun is completed even if the caller is cancelled.
        """
        log = self._present_log()
        return await asyncio.shield(asyncio.ensure_future(self._append_beside(log, appender, entry, number)))

    def now_ns(self) -> int:
        """The log's clock, or slightly earlier. From any thread. Raises Refusal while it is unknown."""
        return max(self._now_ns, self._clock())

    def splitter_of(self, route: SourceRoute) -> Splitter[_Piece]:
        """The splitter of that source."""
        return self.splitters[route.source.name]

    async def await_closed(self, timeout_s: float) -> None:
        """Returns when no feed is left open, or after `timeout_s`."""
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._empty.wait(), timeout_s)

    def close(self) -> None:
        """Waits a bounded time for the frames being split. Close the log after this, before the loop ends."""
        deadline_s = self._loop.time() + CLOSE_S_MAX
        for splitter in self.splitters.values():
            splitter.close(max(0.0, deadline_s - self._loop.time()))

    def _route_of(self, hello: Hello) -> SourceRoute:
        route = self.routes.get(hello.source)
        if route is None:
            raise Refusal(
                Code.NOT_FOUND,
                f"application {self._application!r} has no source {hello.source[:140]!r}; it has"
                f" {', '.join(sorted(self.routes))}",
            )
        return route

    def _open(
        self, route: SourceRoute, hello: Hello, client: str, sampling: FrameSampling = NO_SAMPLING
    ) -> "Feed":
        self._present_log()
        session = Session(route, hello, self._ends[route.stage_topic], generation=self._generation)
        feed = Feed(self, route, session, client, claimed=session.claimed, client_sampling=sampling)
        self._feeds.add(feed)
        if feed.origin_progress is not None:
            self.ticker.add(feed.origin_progress)
        self._empty.clear()
        return feed

    def _present_log(self) -> Log:
        if self._log is None:
            raise unavailable(f"{self._absence}; connect again in a while")
        return self._log

    def _split(self, piece: _Piece) -> Taken:
        """In the splitter's thread."""
        self.progress.begin_frame(piece.feed.origin, self._loop.time())
        try:
            if piece.feed.fault is not None:
                raise piece.feed.fault
            number = piece.work()
        except BaseException:
            piece.entry.failed = True
            piece.entry.appends = 0
            if piece.entry.traced is not None:
                piece.entry.traced.finish(0, "the frame was refused")
            raise
        finally:
            self.progress.end_frame()
        return self._append_alone(piece.log, piece.feed, piece.entry, number)

    def _was_split(self, piece: _Piece, outcome: Outcome) -> None:
        """In the splitter's thread, before it begins with another piece."""
        if not isinstance(outcome, Taken):
            piece.feed.refuse(outcome)
        self._split_pieces.put((piece, outcome))

    async def _append_beside(self, log: Log, appender: Appender, entry: Entry, number: Number) -> Taken:
        taken: Taken | None = None
        try:
            taken = await asyncio.to_thread(self._append_alone, log, appender, entry, number)
        finally:
            self._handed_over(appender, entry, taken)
        return taken

    def _append_alone(self, log: Log, appender: Appender, entry: Entry, number: Number) -> Taken:
        with self._numbering:
            return self._append(log, appender, entry, number)

    def _append(self, log: Log, appender: Appender, entry: Entry, number: Number) -> Taken:
        """In a splitter's thread, or another, while no other is here."""
        appended, whole, messages = 0, False, 0
        try:
            self._now_ns = self.now_ns()
            taken = number(self._loop.time(), self._now_ns)
            messages = taken.messages
            entry.dead_letters = len(taken.refused)
            entry.watermark_ns = taken.watermark_ns
            if taken.appends:
                entry.appended = True
                self.progress.add_pending(self._loop.time())
            for each in taken.appends:
                on_done: Answer = partial(self._answer, appender, entry, each.numbered_in, each.opens)
                to = TopicPartition(each.topic, each.partition)
                if entry.traced is None or each.opens:
                    log.append(to, each.value, on_done)
                else:
                    entry.traced.append(log, to, each.value, on_done)
                appended += 1
            whole = True
        except LogError as error:
            raise refused_by_log(error) from None
        finally:
            # Set before the entry counts as answered: it must not seem durable in between.
            if not whole:
                entry.failed = True
            entry.appends = appended
            if entry.traced is not None:
                entry.traced.finish(messages, "" if whole else "not all of its records were appended")
        return taken

    def _answer(
        self,
        appender: Appender,
        entry: Entry,
        partition: int,
        opens: bool,  # noqa: FBT001
        answer: int | LogError,
    ) -> None:
        """In the log's thread."""
        self._answers.put((appender, entry, partition, opens, answer))

    def _piece_is_done(self, done: "tuple[_Piece, Outcome]") -> None:
        piece, outcome = done
        self.splitter_of(piece.feed.route).waiting.remove(piece.size)
        self._handed_over(piece.feed, piece.entry, outcome if isinstance(outcome, Taken) else None)
        piece.on_done(outcome)

    def _handed_over(self, appender: Appender, entry: Entry, taken: Taken | None) -> None:
        """`taken`: None when it was refused."""
        if taken is None:
            entry.failed = True
        elif not entry.released:
            # The frame is freed; its records are in memory instead.
            held = sum(len(each.value) + RECORD_BYTES for each in taken.appends)
            entry.size, before = held, entry.size
            self._hold(held - before)
        self._release(entry)
        # The log may have answered already, or there was nothing to append.
        if entry.is_answered:
            appender.wake()

    @property
    def holds_answers(self) -> bool:
        """Whether the log has answered for frames that get no receipt yet. See `Confirming`."""
        return self._confirming.holds_any

    def _answered(self, answer: RecordAnswer) -> None:
        self.progress.note_answer(self._loop.time())
        self._confirming.put(answer)

    def _confirmed(self, answer: RecordAnswer) -> None:
        appender, entry, partition, opens, result = answer
        if not appender.answered(entry, partition, result, opens=opens):
            entry.failed = True
        entry.answered += 1
        self._release(entry)
        if entry.is_answered:
            appender.wake()

    def _release(self, entry: Entry) -> None:
        """Frees an entry's bytes in the buffer once the log has answered for all of its records."""
        if not entry.is_answered or entry.released:
            return
        entry.released = True
        if entry.appended:
            self.progress.remove_pending()
        self._hold(-entry.size)

    def _hold(self, size: int) -> None:
        """Adds to the buffer, or removes from it if negative; feeds can grant credits when there is room again."""
        was_full = self.buffer.is_full
        if size >= 0:
            self.buffer.add(size)
        else:
            self.buffer.remove(-size)
        if was_full and not self.buffer.is_full:
            for feed in self._feeds:
                feed.wake()
