"""TICKs: a partition that gets no frame of an origin gets the origin's watermark in a TICK. Pure.

    frames of an origin   5 ─────── 6 ─────── 7 ─ ─ ─ 8          8 is not in the log yet
    watermark             100       140       150
    partition 0           5                   7                  knows 150 by the frame
    partition 1                     6                            knows 140, gets a TICK with 150
    partition 2                                                  gets a TICK with 150

The watermark in a TICK counts a frame only once the frame and all frames before it lie in the log, in all of their
partitions. So no frame can follow a TICK whose watermark did not count it. A partition that got a frame within the last
tick gets no TICK: its next frame may bring the watermark.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from bettong.frames.frame import tick_record
from bettong.identifiers import Origin, TopicPartition
from bettong.ingest.session import NO_PARTITION, Append, Session, SourceRoute, Taken
from bettong_sender.ledger import Ledger

_S_NS = 1_000_000_000

# So that a TICK fits the smallest frame that can be set, 16 KiB: an origin has at most 230 characters.
ORIGINS_PER_TICK_MAX = 64

# Ended sessions whose last watermark some partitions lack, at most; as many as can be open by default. They stay for
# some ticks. A partition that misses the last watermark of an origin waits until the origin is idle.
ENDED_MAX = 1024


class OriginProgress:
    """How far one session's origin is in event time, and which of its watermarks each partition knows."""

    def __init__(self, route: SourceRoute, session: Session, ledger: Ledger) -> None:
        self.route = route
        self.origin = session.origin
        # Of the newest frame that is durable with all frames before it; 0 while unknown. `advance` moves it.
        self.watermark_ns = 0
        self.moved_s = 0.0
        self._session = session
        self._ledger = ledger
        self._known_ns = [0] * route.partitions
        self.is_over = False

    @property
    def generation(self) -> int:
        """The session's generation."""
        return self._session.generation

    def advance(self, now_s: float) -> None:
        """Counts the frames that the broker has acknowledged until now."""
        self._ledger.advance()
        if self._ledger.watermark_ns > self.watermark_ns:
            self.watermark_ns, self.moved_s = self._ledger.watermark_ns, now_s

    def note_watermark(self, partition: int, watermark_ns: int) -> None:
        """Notes that the partition has a record with this watermark, and all records before it."""
        self._known_ns[partition] = max(self._known_ns[partition], watermark_ns)

    def partitions_behind(self) -> list[int]:
        """The partitions that do not know the watermark."""
        if self.is_over:
            return []
        return [partition for partition, known in enumerate(self._known_ns) if known < self.watermark_ns]

    def partitions_due(self, now_s: float, tick_s: float) -> list[int]:
        """Those of them to which no record was sent for a tick."""
        return [each for each in self.partitions_behind() if now_s - self._session.sent_s(each) >= tick_s]

    def end(self) -> None:
        """Notes that no client sends under this origin any more: TICKs no longer carry its watermark."""
        self.is_over = True

    @property
    def is_complete(self) -> bool:
        """Whether every partition has the watermark, as long as no further frames arrive."""
        return self.is_over or (self._ledger.is_final and not self.partitions_behind())


@dataclass(frozen=True, slots=True)
class Round:
    """The TICKs of one tick: the origin, partition and watermark of each."""

    notices: list[tuple[OriginProgress, int, int]]

    def number(self, now_s: float, now_ns: int) -> Taken:
        """The TICKs as records, stamped with `now_ns`."""
        del now_s
        return Taken(list(self._appends(now_ns)))

    def note_durable(self) -> None:
        """Notes that the TICKs are in the log."""
        for progress, partition, watermark_ns in self.notices:
            progress.note_watermark(partition, watermark_ns)

    def _appends(self, now_ns: int) -> Iterator[Append]:
        watermarks: defaultdict[tuple[TopicPartition, str, int], dict[Origin, int]] = defaultdict(dict)
        for progress, partition, watermark_ns in self.notices:
            if progress.is_over:  # its END may be in the log by now
                continue
            route = progress.route
            log = TopicPartition(route.stage_topic, partition)
            origins = watermarks[log, route.source.name, progress.generation]
            # A session that was taken over may still be listed, beside the new one of its stream.
            origins[progress.origin] = max(origins.get(progress.origin, 0), watermark_ns)
        for (log, source, generation), origins in watermarks.items():
            waiting = iter(origins.items())
            while some := dict(islice(waiting, ORIGINS_PER_TICK_MAX)):
                value = tick_record(source, now_ns, some, generation=generation)
                yield Append(*log, value, NO_PARTITION)


class Ticker:
    """The sessions of sources whose stages need time. Used from one thread."""

    def __init__(self) -> None:
        self._open: dict[OriginProgress, None] = {}
        self._ended: deque[OriginProgress] = deque(maxlen=ENDED_MAX)

    def __len__(self) -> int:
        """The number of known sessions, open or ended."""
        return len(self._open) + len(self._ended)

    def add(self, progress: OriginProgress) -> None:
        """Adds a session that begins."""
        self._open[progress] = None

    def close(self, progress: OriginProgress) -> None:
        """Notes that a session has ended. Its frames in flight still arrive, and partitions get their watermarks."""
        if progress in self._open:
            del self._open[progress]
            self._ended.append(progress)

    def end(self, progress: OriginProgress) -> None:
        """Ends TICKs for this origin, in earlier sessions too: no client sends under it any more."""
        for each in (*self._open, *self._ended):
            if each.origin == progress.origin:
                each.end()

    def round(self, now_s: float, tick_s: float) -> Round:
        """The TICKs that are due now; `now_s`: by the clock of `Session.open`."""
        notices = []
        for progress in (*self._open, *self._ended):
            progress.advance(now_s)
            due = progress.partitions_due(now_s, tick_s)
            notices += [(progress, partition, progress.watermark_ns) for partition in due]
        if self._ended:
            self._ended = deque((each for each in self._ended if not each.is_complete), ENDED_MAX)
        return Round(notices)

    def slowest_ns(self, now_s: float) -> dict[str, int]:
        """By source, the lowest watermark of its open sessions; sessions that count as idle are left out."""
        found: dict[str, int] = {}
        for progress in self._open:
            idle_ns = progress.route.source.event_time.idle_timeout_ns
            if progress.watermark_ns and (idle_ns is None or (now_s - progress.moved_s) * _S_NS < idle_ns):
                name = progress.route.source.name
                found[name] = min(found.get(name, progress.watermark_ns), progress.watermark_ns)
        return found
