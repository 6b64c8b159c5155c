"""How the messages of a frame are divided over partitions, and which go to the dead letters. Pure.

messages          to the partition of their key, or, without one, all to that of the frame
refused           to the partition of the origin: what they are alone decides that
refused as early  to the partition that they would have gone to. Sent again later they are taken, and a consumer tells
                  a repetition by its number, in its own partition: so each is there once, as the one or the other
"""

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain, pairwise

from bettong.application.streams import Source
from bettong.frames.refused import Refused
from bettong.routing import partition_of, split
from bettong_sender.body import Body, assign
from bettong_sender.deaths import Care
from bettong_sender.event_times import judge_event_times


@dataclass(frozen=True, slots=True)
class Division:
    """Of each partition that gets messages: its number, how many, their columns; and by partition those refused.

    `messages`: all that the frame held. `highest_ns`: the newest event time of those that are not refused; 0 when there
    is none, and where it is the time of taking in.
    """

    shares: list[tuple[int, int, bytes]]
    refused: Mapping[int, list[Refused]]
    messages: int
    highest_ns: int

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
) -> Division:
    """Divides a body. `home`: the partition of the origin. `frame`: what the frame is called, which decides where there
    is no key. `now_ns`: None where nobody needs event times.
    """
    messages = body.columns.length + len(body.refused)
    if source.key is None:
        # Hashed: clients number their frames in steps, which may be a multiple of the partitions.
        assignment, whole = None, partition_of(frame, partitions)
    else:
        (body, assignment), whole = assign(source, body, partitions, care), home
    refused: defaultdict[int, list[Refused]] = defaultdict(list)
    highest_ns = 0
    if now_ns is not None:
        timed = judge_event_times(source, body, now_ns, care)
        highest_ns = timed.highest_ns
        for row, each in timed.early:
            refused[whole if assignment is None else int(assignment[row])].append(each)
        if timed.kept is not None:
            body = body.only(timed.kept, timed.wrong)
            assignment = None if assignment is None else assignment[timed.kept]
    if body.refused:
        refused[home] = sorted((*refused[home], *body.refused), key=lambda each: each.index)
    columns = body.columns
    if assignment is None:
        shares = [(whole, columns.length, columns.payload())] if columns.length else []
        return Division(shares, refused, messages, highest_ns)
    division = split(assignment, partitions)
    counts = [stop - start for start, stop in pairwise(division.bounds)]
    touched = [partition for partition, count in enumerate(counts) if count]
    bounds = [0, *(division.bounds[partition + 1] for partition in touched)]
    payloads = columns.take(division.order).payloads(bounds)
    shares = [
        (partition, counts[partition], payload) for partition, payload in zip(touched, payloads, strict=True)
    ]
    return Division(shares, refused, messages, highest_ns)
