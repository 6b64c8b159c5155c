"""The watermark of a stage's new partitions: the lowest that the old ones would have by now.

The logs of old partitions end at different times. Each clock is first brought to the latest of these log clocks, which
is the new partitions' own, as a TICK would have done it: origins that were not heard from fall idle, and without a live
one the watermark advances. So it does not go back where a partition was at rest. By the lowest of the watermarks no
message is late that was not late before. A message may be taken that the fastest of the old partitions would call
late: they differ by what no TICK had reported yet. The partitions of earlier stages are live, at that watermark, and
report again how far they are, or that they are idle: as a new application's would.
"""

from collections.abc import Iterable, Mapping, Sequence

from bettong.identifiers import Origin, partition_origin, producer_of
from bettong.v1.snapshot_pb2 import EventClock, Snapshot
from bettong.worker.event_clock import watermarks_of
from bettong.worker.watermarks import Watermarks


def merged(
    old: Sequence[Snapshot],
    producers: Iterable[str],
    partitions: int,
    *,
    log_ns: int,
    idle_ns: Mapping[str, int | None],
) -> EventClock:
    """The event clock of each new partition, without what the next stages know. `log_ns`: their log clock.

    `old`: the newest snapshots of the old partitions. `producers`: of the stages before, which will have that many
    `partitions`. `idle_ns`: see `Watermarks`.
    """
    clocks = [_brought_to(log_ns, each, idle_ns) for each in old if each.now_ns]
    found = EventClock(
        watermark_ns=_lowest(each.watermark_ns for each in clocks),
        reached_ns=_lowest(each.reached_ns for each in clocks),
    )
    if not clocks:
        # No origin was ever heard from: the worker awaits what a new one awaits.
        found.awaited.extend(_origins(producers, partitions))
        return found
    before = set(producers)
    heard_ns: dict[Origin, int] = {}
    watermarks_ns: dict[Origin, int] = {}
    for clock in clocks:
        for origin, each in clock.origins:
            if producer_of(origin) not in before:
                heard_ns[origin] = max(heard_ns.get(origin, 0), each.heard_ns)
                watermarks_ns[origin] = min(watermarks_ns.get(origin, each.watermark_ns), each.watermark_ns)
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


def _brought_to(log_ns: int, old: Snapshot, idle_ns: Mapping[str, int | None]) -> Watermarks:
    found = watermarks_of(old.event_clock, old.now_ns, idle_ns)
    found.pass_time(log_ns)
    return found


def _lowest(times_ns: Iterable[int]) -> int:
    """The lowest of those that are known; 0 without any."""
    return min((each for each in times_ns if each), default=0)


def _origins(producers: Iterable[str], partitions: int) -> list[Origin]:
    return [partition_origin(each, partition) for each in producers for partition in range(partitions)]


def _awaits_all(clock: Watermarks, producer: str) -> bool:
    """Whether none of a producer's partitions was ever heard from there."""
    heard = any(producer_of(origin) == producer for origin, _ in clock.origins)
    return not heard and any(producer_of(origin) == producer for origin in clock.awaited)
