"""TICKs: partitions that get no frame of an origin are told how far it has come in event time. Pure.

    frames of an origin   5 ─────── 6 ─────── 7 ─ ─ ─ 8          8 is not in the log yet
    watermark             100       140       150
    partition 0           5                   7                  knows 150 by the frame
    partition 1                     6                            knows 140, is told 150 at the next tick
    partition 2                                                  is told 150, too

Told is only what frames say that lie in the log in all of their partitions, and all before them: so nothing can come
behind a TICK that its watermark did not count. Who got a frame within the last tick is left alone, for the next may do.
"""

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from bettong.frames.frame import tick_record
from bettong.identifiers import Origin
from bettong_sender.ledger import Ledger
from bettong_sender.session import NO_PARTITION, Append, Session, SourceRoute, Taken

_S_NS = 1_000_000_000

# So that a TICK fits the smallest frame that can be set, 16 KiB: an origin has at most 230 letters.
ORIGINS_PER_TICK_MAX = 64

# Sessions that have ended, of which partitions are still to be told: as many as are open at a time by default. They
# stay for some ticks; of those that are left out partitions hear no more, and forget them when they are idle.
ENDED_MAX = 1024


class OriginProgress:
    """How far one session's origin has come in event time, and what each partition knows of that."""

    def __init__(self, route: SourceRoute, session: Session, ledger: Ledger) -> None:
        self.route = route
        self.origin = session.origin
        # Of the frames that lie in the log as a whole, and all before them; 0 while unknown. Since when, see `advance`.
        self.watermark_ns = 0
        self.moved_s = 0.0
        self._session = session
        self._ledger = ledger
        self._known_ns = [0] * route.partitions
        self.is_over = False

    def advance(self, now_s: float) -> None:
        """Looks at what the log has answered for until now."""
        self._ledger.advance()
        if self._ledger.watermark_ns > self.watermark_ns:
            self.watermark_ns, self.moved_s = self._ledger.watermark_ns, now_s

    def note(self, partition: int, watermark_ns: int) -> None:
        """The partition has a record that says so, and all before it."""
        self._known_ns[partition] = max(self._known_ns[partition], watermark_ns)

    def untold(self) -> list[int]:
        """The partitions that do not know the watermark."""
        if self.is_over:
            return []
        return [partition for partition, known in enumerate(self._known_ns) if known < self.watermark_ns]

    def due(self, now_s: float, tick_s: float) -> list[int]:
        """Those of them that got nothing for a tick."""
        return [each for each in self.untold() if now_s - self._session.sent_s(each) >= tick_s]

    def end(self) -> None:
        """Nobody comes back under this origin: no TICK tells of it any more."""
        self.is_over = True

    @property
    def is_settled(self) -> bool:
        """Whether there is nothing more to tell, unless further frames come."""
        return self.is_over or (self._ledger.is_final and not self.untold())


@dataclass(frozen=True, slots=True)
class Round:
    """What is told at one tick: who, where, and what."""

    notices: list[tuple[OriginProgress, int, int]]

    def number(self, now_s: float, now_ns: int) -> Taken:
        """The TICKs, for the log's clock."""
        del now_s
        return Taken(list(self._appends(now_ns)))

    def note(self) -> None:
        """They lie in the log."""
        for progress, partition, watermark_ns in self.notices:
            progress.note(partition, watermark_ns)

    def _appends(self, now_ns: int) -> Iterator[Append]:
        watermarks: defaultdict[tuple[str, str, int], dict[Origin, int]] = defaultdict(dict)
        for progress, partition, watermark_ns in self.notices:
            if progress.is_over:  # its END may be in the log by now
                continue
            route = progress.route
            origins = watermarks[route.stage_topic, route.source.name, partition]
            # A session that was taken over may be told of beside the new one of its stream.
            origins[progress.origin] = max(origins.get(progress.origin, 0), watermark_ns)
        for (topic, source, partition), origins in watermarks.items():
            waiting = iter(origins.items())
            while some := dict(islice(waiting, ORIGINS_PER_TICK_MAX)):
                yield Append(topic, partition, tick_record(source, now_ns, some), NO_PARTITION)


class Ticker:
    """The sessions of sources whose stages need time. Used from one thread."""

    def __init__(self) -> None:
        self._open: dict[OriginProgress, None] = {}
        self._ended: deque[OriginProgress] = deque(maxlen=ENDED_MAX)

    def __len__(self) -> int:
        """How many sessions are known."""
        return len(self._open) + len(self._ended)

    def add(self, progress: OriginProgress) -> None:
        """A session begins."""
        self._open[progress] = None

    def close(self, progress: OriginProgress) -> None:
        """It has ended. What is on its way to the log goes on, and partitions are told of that, too."""
        if progress in self._open:
            del self._open[progress]
            self._ended.append(progress)

    def end(self, progress: OriginProgress) -> None:
        """Nobody comes back under that origin. Earlier sessions of it are not told of any more either."""
        for each in (*self._open, *self._ended):
            if each.origin == progress.origin:
                each.end()

    def round(self, now_s: float, tick_s: float) -> Round:
        """What is to be told now; `now_s`: by the clock of `Session.open`."""
        notices = []
        for progress in (*self._open, *self._ended):
            progress.advance(now_s)
            due = progress.due(now_s, tick_s)
            notices += [(progress, partition, progress.watermark_ns) for partition in due]
        if self._ended:
            self._ended = deque((each for each in self._ended if not each.is_settled), ENDED_MAX)
        return Round(notices)

    def slowest_ns(self, now_s: float) -> dict[str, int]:
        """By source, the lowest watermark of the sessions that are open, but for those that would be idle."""
        found: dict[str, int] = {}
        for progress in self._open:
            idle_ns = progress.route.source.event_time.idle_timeout_ns
            if progress.watermark_ns and (idle_ns is None or (now_s - progress.moved_s) * _S_NS < idle_ns):
                name = progress.route.source.name
                found[name] = min(found.get(name, progress.watermark_ns), progress.watermark_ns)
        return found
