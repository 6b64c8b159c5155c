"""The watermark of one partition: the lowest of the watermarks of its live origins.

    origin's watermark      what its records said; never goes back; 0 while it is unknown
    partition's watermark   the lowest of its live origins; never goes back
    live                    heard from less than its `idle_timeout` of log clock ago, and not ended
    none is live            the watermark advances as the log clock does, so that what is open closes

An origin whose watermark is unknown holds the partition's back. So does one that begins below it: what it sends below
is late. An origin is forgotten when it ends or falls idle; so the table holds live ones only.

The partitions of the stage before are known before they send anything. Each is awaited until it is heard from, or
reports that it is idle: until then it holds the watermark back.

Pure: no clock, no I/O. What happens between two records happens at its own time of the log clock, so it does not
matter how many records, or TICKs, there are in between.
"""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from bettong.application.timers import NEVER
from bettong.event_progress import InputProgress
from bettong.frames.frame import CLOCK_NS_MAX
from bettong.identifiers import Origin, producer_of
from bettong.worker.lazy_heap import LazyHeap

# Only sources with `idle_timeout=None` can have so many origins that never end. Beyond it the one heard from longest
# ago is forgotten: a table of 100,000 takes 30 MB, and 5 MB of each snapshot.
ORIGINS_MAX = 100_000
# Of more live ones only the slowest is reported: inspecting each takes 0.2 us, once a second.
INSPECTED_MAX = 1_000


@dataclass(slots=True)
class OriginClock:
    """An origin's watermark, and the log clock when it was heard from last.

    `moved_ns`: the log clock when the watermark rose last; 0 where that was before this table. It is only shown, and
    not stored.
    """

    watermark_ns: int
    heard_ns: int
    moved_ns: int = field(default=0, compare=False)


class Watermarks:
    """The watermarks of one partition. `idle_ns`: by producer, how long an origin stays live unheard; None: for ever.

    Origins of other producers are ignored: one that was removed from the application would hold the watermark back for
    ever. `awaited`: origins not heard from yet. `reached_ns`: how far origins have moved the watermark; the log clock
    may have moved it further since. The other arguments restore an earlier table, `origins` in its order.
    """

    def __init__(
        self,
        idle_ns: Mapping[str, int | None],
        *,
        awaited: Iterable[Origin] = (),
        log_ns: int = 0,
        watermark_ns: int = 0,
        reached_ns: int = 0,
        origins: Mapping[Origin, OriginClock] | None = None,
    ) -> None:
        self.watermark_ns = watermark_ns
        self.reached_ns = reached_ns
        self._idle_ns = idle_ns
        self._log_ns = log_ns
        # In the order of the argument.
        self._awaited = dict.fromkeys(awaited)
        # The one heard from longest ago first.
        self._origins: dict[Origin, OriginClock] = {}
        # By their watermarks, and by the log clock at which they fall idle.
        self._lowest = LazyHeap(self._watermark_of)
        self._idle = LazyHeap(self._idle_of)
        for origin, clock in (origins or {}).items():
            self._add(origin, clock)

    @property
    def origins(self) -> Iterator[tuple[Origin, OriginClock]]:
        """The live origins, the one heard from longest ago first."""
        return iter(self._origins.items())

    @property
    def awaited(self) -> Iterable[Origin]:
        """The origins not heard from yet."""
        return self._awaited

    @property
    def is_live(self) -> bool:
        """Whether any origin is live or awaited."""
        return bool(self._origins or self._awaited)

    @property
    def slowest(self) -> Origin | None:
        """The origin that holds the watermark back: an awaited one, else the lowest live one; None without any."""
        if self._awaited:
            return next(iter(self._awaited))
        lowest = self._lowest.first()
        return lowest[1] if lowest is not None else None

    @property
    def inputs(self) -> tuple[InputProgress, ...]:
        """By producer, its slowest origin; with more than INSPECTED_MAX live ones only the slowest of all."""
        slowest = self.slowest
        if len(self._origins) > INSPECTED_MAX:
            known = [slowest] if slowest in self._origins else []
        else:
            known = list(self._origins)
        lowest: dict[str, Origin] = {}
        live: dict[str, int] = {}
        for origin in known:
            producer = producer_of(origin)
            live[producer] = live.get(producer, 0) + 1
            least = lowest.setdefault(producer, origin)
            if self._origins[origin].watermark_ns < self._origins[least].watermark_ns:
                lowest[producer] = origin
        if len(known) < len(self._origins):  # they were not counted by producer
            live = dict.fromkeys(live, len(self._origins))
        awaited: dict[str, list[Origin]] = {}
        for origin in self._awaited:
            awaited.setdefault(producer_of(origin), []).append(origin)
        return tuple(
            self._input(producer, lowest.get(producer), live.get(producer, 0), awaited.get(producer, ()))
            for producer in self._idle_ns
        )

    def _input(
        self, producer: str, lowest: Origin | None, live: int, awaited: Sequence[Origin]
    ) -> InputProgress:
        idle_ns = self._idle_ns[producer]
        if awaited or lowest is None:
            first = awaited[0] if awaited else Origin("")
            return InputProgress(producer, live, len(awaited), first, 0, 0, 0, idle_ns)
        clock = self._origins[lowest]
        return InputProgress(
            producer, live, 0, lowest, clock.watermark_ns, clock.heard_ns, clock.moved_ns, idle_ns
        )

    def others_ns(self, origin: Origin) -> int:
        """The lowest watermark of the other live origins: CLOCK_NS_MAX without any.

        0 for an origin of no producer here, and where others are awaited.
        """
        if producer_of(origin) not in self._idle_ns or self._awaited.keys() - {origin}:
            return 0
        own = None
        while (first := self._lowest.first()) is not None and first[1] == origin:
            self._lowest.drop_first()
            own = first
        if own is not None:
            self._lowest.push(origin, own[0])
        return first[0] if first is not None else CLOCK_NS_MAX

    def pass_time(self, log_ns: int) -> None:
        """Advances the log clock. Call it before what a record says of origins."""
        while (idle := self._idle.first(log_ns)) is not None:
            idle_ns, origin = idle
            self._advance_clock(idle_ns)
            self._remove(origin)
        self._advance_clock(log_ns)

    def reach(self, origin: Origin, watermark_ns: int) -> None:
        """An origin was heard from, and has this watermark; 0: it is unknown."""
        clock = self._note_heard(origin, is_new=True)
        if clock is not None and watermark_ns > clock.watermark_ns:
            clock.watermark_ns = min(watermark_ns, CLOCK_NS_MAX)
            clock.moved_ns = self._log_ns
            self._raise_watermark()

    def hear(self, origin: Origin) -> None:
        """An origin was heard from by a record that does not count; its watermark stays as it was."""
        self._note_heard(origin, is_new=False)

    def end(self, origin: Origin) -> None:
        """An origin has ended."""
        if origin in self._origins:
            self._remove(origin)

    def fall_idle(self, origin: Origin, watermark_ns: int) -> None:
        """An origin reports that it is idle, at this watermark. Stays live if it is known to be further."""
        self._stop_awaiting(origin)
        clock = self._origins.get(origin)
        if clock is not None and clock.watermark_ns <= watermark_ns:
            self.reach(origin, watermark_ns)
            self._remove(origin)

    @property
    def idle_ns(self) -> int | None:
        """The log clock at which an origin falls idle next, unless it is heard from before; None: none ever does."""
        idle = self._idle.first()
        return idle[0] if idle is not None else None

    def _note_heard(self, origin: Origin, *, is_new: bool) -> OriginClock | None:
        clock = self._origins.pop(origin, None)
        if clock is not None:
            clock.heard_ns = self._log_ns
            self._origins[origin] = clock
        elif is_new and producer_of(origin) in self._idle_ns:
            clock = OriginClock(0, self._log_ns)
            self._add(origin, clock)
            self._stop_awaiting(origin)
            if len(self._origins) > ORIGINS_MAX:
                self._remove(next(iter(self._origins)))
        return clock

    def _add(self, origin: Origin, clock: OriginClock) -> None:
        self._origins[origin] = clock
        self._lowest.push(origin, clock.watermark_ns)
        if (idle_ns := self._idle_of(origin)) != NEVER:
            self._idle.push(origin, idle_ns)

    def _stop_awaiting(self, origin: Origin) -> None:
        """The origin need not be awaited any longer."""
        if origin in self._awaited:
            del self._awaited[origin]
            self._raise_watermark()

    def _watermark_of(self, origin: Origin) -> int:
        clock = self._origins.get(origin)
        return clock.watermark_ns if clock is not None else NEVER

    def _idle_of(self, origin: Origin) -> int:
        """The log clock at which an origin falls idle, unless it is heard from before."""
        clock, timeout_ns = self._origins.get(origin), self._idle_ns.get(producer_of(origin))
        return clock.heard_ns + timeout_ns if clock is not None and timeout_ns is not None else NEVER

    def _remove(self, origin: Origin) -> None:
        del self._origins[origin]
        for each in (self._lowest, self._idle):
            each.compact(len(self._origins))
        self._raise_watermark()

    def _raise_watermark(self) -> None:
        """Raises the watermark to the lowest one of the live origins."""
        lowest = self._lowest.first()
        if not self._awaited and lowest is not None and lowest[0] > self.watermark_ns:
            self.watermark_ns = self.reached_ns = lowest[0]

    def _advance_clock(self, log_ns: int) -> None:
        if log_ns > self._log_ns:
            if not self.is_live and self.watermark_ns:
                self.watermark_ns = min(self.watermark_ns + log_ns - self._log_ns, CLOCK_NS_MAX)
            self._log_ns = log_ns
