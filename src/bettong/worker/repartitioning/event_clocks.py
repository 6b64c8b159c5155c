"""How far event time has come in the new partitions of a stage: where the slowest of the old ones was.

So no message is late that was not late before. A message may be taken that the fastest of the old partitions would
have called late: they differ by what a TICK had not told yet. The partitions of the stages before are live, at that
watermark, and tell again how far they are, or that they are idle: as a new application's would.
"""

from collections.abc import Iterable, Sequence

from bettong.identifiers import Origin, partition_origin, producer_of
from bettong.v1.snapshot_pb2 import EventClock, Snapshot


def merged(old: Sequence[Snapshot], producers: Iterable[str], partitions: int, log_ns: int) -> EventClock:
    """The clock of each new partition, but for what the next stages know. `log_ns`: the log clock there.

    `old`: the newest snapshots of the old partitions. `producers`: of the stages before, which will have so many
    `partitions`.
    """
    clocks = [each.event_clock for each in old if each.now_ns]
    found = EventClock(
        watermark_ns=_lowest(each.watermark_ns for each in clocks),
        reached_ns=_lowest(each.reached_ns for each in clocks),
    )
    if not clocks:
        # Nothing was ever heard of: the worker awaits what a new one awaits.
        found.awaited.extend(_origins(producers, partitions))
        return found
    before = set(producers)
    heard_ns: dict[str, int] = {}
    watermarks_ns: dict[str, int] = {}
    for clock in clocks:
        for each in clock.origins:
            if producer_of(Origin(each.origin)) not in before:
                heard_ns[each.origin] = max(heard_ns.get(each.origin, 0), each.heard_ns)
                known_ns = watermarks_ns.get(each.origin, each.watermark_ns)
                watermarks_ns[each.origin] = min(known_ns, each.watermark_ns)
    for origin in sorted(heard_ns, key=lambda each: (heard_ns[each], each)):
        found.origins.add(origin=origin, watermark_ns=watermarks_ns[origin], heard_ns=heard_ns[origin])
    for producer in producers:
        own = _origins([producer], partitions)
        if all(_awaits_all(clock, producer) for clock in clocks):
            found.awaited.extend(own)
        else:
            for origin in own:
                found.origins.add(origin=origin, watermark_ns=found.watermark_ns, heard_ns=log_ns)
    return found


def _lowest(times_ns: Iterable[int]) -> int:
    """Of those that are known."""
    return min((each for each in times_ns if each), default=0)


def _origins(producers: Iterable[str], partitions: int) -> list[Origin]:
    return [partition_origin(each, partition) for each in producers for partition in range(partitions)]


def _awaits_all(clock: EventClock, producer: str) -> bool:
    """Whether none of a producer's partitions was ever heard of there."""
    heard = any(producer_of(Origin(each.origin)) == producer for each in clock.origins)
    return not heard and any(producer_of(Origin(each)) == producer for each in clock.awaited)
