"""Divides the messages of a frame by partition, and finds those for the dead letters. Pure.

messages          to the partition of their key, or, without one, all to that of the frame
refused           to the partition of the origin: the message alone decides whether it is refused
refused as early  to the partition that they would have gone to. Sent again later they are accepted, and a consumer
                  recognizes a duplicate by its number in its own partition: so each is there once, accepted or refused
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise

from bettong.application.nodes.source import Source
from bettong.frames.columns import Array
from bettong.frames.refused import Refused
from bettong.frames.times import encode_times
from bettong.ingest.body import Body, assign
from bettong.ingest.care import Care
from bettong.ingest.event_times import Timed, judge_event_times, watermarks_before
from bettong.routing import partition_of, split


@dataclass(frozen=True, slots=True)
class Division:
    """`shares`: partition, message count and columns, for each partition that gets messages. `refused`: by partition.

    `messages`: all that the frame held. `highest_ns`: the newest event time of those that are not refused; 0 when there
    is none, and where event time is ingest time. `watermarks`: by partition, as `Frame.message_watermarks`.
    """

    shares: list[tuple[int, int, bytes]]
    refused: Mapping[int, list[Refused]]
    messages: int
    highest_ns: int
    watermarks: Mapping[int, bytes]

    @property
    def all_refused(self) -> tuple[Refused, ...]:
        """In their order."""
        return tuple(sorted(chain(*self.refused.values()), key=lambda each: each.index))


def divide(
    source: Source,
    body: Body,
    partitions: int,
    *,
    home: int,
    frame: str,
    care: Care | None,
    now_ns: int | None,
    highest_ns: int | None,
    needs_each_watermark: bool = False,
) -> Division:
    """Divides a body. `home`: the partition of the origin. `frame`: the frame's name, whose hash picks the partition if
    there is no key. `now_ns`: None if the stage needs no event times. `highest_ns`: newest event time of the messages
    before, None if lateness is not judged. `needs_each_watermark`: see `Stage`.
    """
    messages = body.columns.length + len(body.refused)
    if source.key is None:
        # Hashed: clients number their frames in steps, which may be a multiple of the partitions.
        assignment, whole = None, partition_of(frame, partitions)
    else:
        (body, assignment), whole = assign(source, body, partitions, care), home
    refused: defaultdict[int, list[Refused]] = defaultdict(list)
    timed = Timed()
    if now_ns is not None:
        timed = judge_event_times(source, body, now_ns, care)
        for row, each in timed.early:
            refused[whole if assignment is None else int(assignment[row])].append(each)
        if timed.kept is not None:
            body = body.only(timed.kept, timed.wrong)
            assignment = None if assignment is None else assignment[timed.kept]
    if body.refused:
        refused[home] = sorted((*refused[home], *body.refused), key=lambda each: each.index)
    columns = body.columns
    before = (
        watermarks_before(timed.times, highest_ns, source.event_time.out_of_order_ns)
        if highest_ns is not None and timed.times is not None
        else None
    )
    if assignment is None:
        shares = [(whole, columns.length, columns.payload())] if columns.length else []
        watermarks = _watermarks(
            timed.times, before, [whole], [0, columns.length], of_each=needs_each_watermark
        )
        return Division(shares, refused, messages, timed.highest_ns, watermarks)
    division = split(assignment, partitions)
    counts = [stop - start for start, stop in pairwise(division.bounds)]
    touched = [partition for partition, count in enumerate(counts) if count]
    bounds = [0, *(division.bounds[partition + 1] for partition in touched)]
    payloads = columns.take(division.order).payloads(bounds)
    shares = [
        (partition, counts[partition], payload) for partition, payload in zip(touched, payloads, strict=True)
    ]
    if before is not None and timed.times is not None:
        times, before = timed.times[division.order], before[division.order]
    else:
        times = None
    watermarks = _watermarks(times, before, touched, bounds, of_each=needs_each_watermark)
    return Division(shares, refused, messages, timed.highest_ns, watermarks)


def _watermarks(
    times: Array | None,
    before: Array | None,
    partitions: Sequence[int],
    bounds: Sequence[int],
    *,
    of_each: bool,
) -> dict[int, bytes]:
    """By partition, the watermark before each of its messages; left out if no message is older, unless `of_each`."""
    found: dict[int, bytes] = {}
    if times is not None and before is not None:
        for partition, (start, stop) in zip(partitions, pairwise(bounds), strict=True):
            if start < stop and (of_each or (times[start:stop] < before[start:stop]).any()):
                found[partition] = encode_times(before[start:stop])
    return found
