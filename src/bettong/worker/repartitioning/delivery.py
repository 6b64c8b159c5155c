"""The delivery table of all new partitions of a stage, from those of the old ones.

A client's frame that is sent again is partitioned anew: its rows go to other partitions than before. So one sequence
has to say for every new partition whether the frame was taken, and it can only where the frame was taken in all of its
old partitions or in none. That is known

    of frames up to what the client's sender knows to be durable      it has a receipt, or may have one
    of frames up to what every old partition has taken                each takes them in order, without gaps
    of streams that ended, or that are one message                    no frame was taken in part
    where there was one old partition                                 there are no parts

and of no other frame: its client is unsettled.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bettong.delivery import is_client
from bettong.frames.dead_letter_id import DeadLetterId
from bettong.identifiers import NO_SEQUENCE, Origin, SequenceNumber
from bettong.v1.snapshot_pb2 import DeliveryTable, Heard


@dataclass(frozen=True, slots=True)
class Unsettled:
    """A client of whose frames above `complete` some, up to `highest`, may have been taken in part."""

    origin: Origin
    complete: SequenceNumber
    highest: SequenceNumber


def highest_of(tables: Sequence[DeliveryTable]) -> dict[Origin, SequenceNumber]:
    """Of each origin the highest sequence that any partition has taken."""
    found: dict[Origin, SequenceNumber] = {}
    for table in tables:
        for heard in table.heard:
            origin = Origin(heard.origin)
            found[origin] = SequenceNumber(max(found.get(origin, NO_SEQUENCE), heard.highest))
    return found


def unsettled(
    tables: Sequence[DeliveryTable], acknowledged: Mapping[Origin, SequenceNumber]
) -> list[Unsettled]:
    """The unsettled clients, by name. `tables`: of all partitions of a stage; `acknowledged`: what senders know."""
    if len(tables) == 1:
        return []
    heard: dict[Origin, list[Heard]] = {}
    for table in tables:
        for each in table.heard:
            heard.setdefault(Origin(each.origin), []).append(each)
    found = []
    for origin in sorted(filter(is_client, heard)):
        of_origin = heard[origin]
        highest = SequenceNumber(max(each.highest for each in of_origin))
        complete = acknowledged.get(origin, NO_SEQUENCE)
        if len(of_origin) == len(tables):
            complete = SequenceNumber(max(complete, min(each.highest for each in of_origin)))
        if complete < highest and not _has_no_parts(origin, of_origin, highest):
            found.append(Unsettled(origin, complete, highest))
    return found


def lost_frames(tables: Sequence[DeliveryTable]) -> list[Origin]:
    """The stages' partitions that lost a frame, so that a later one was skipped."""
    return sorted(
        {origin for table in tables for each in table.missed if not is_client(origin := Origin(each.origin))}
    )


def merged(tables: Sequence[DeliveryTable]) -> DeliveryTable:
    """The table of each new partition. An origin was silent as long as in the partition that heard from it last.

    Gaps are dropped: what was lost and not acknowledged is sent again.
    """
    age_ns = max(each.age_ns for each in tables)
    heard: dict[str, list[tuple[int, Heard]]] = {}
    for table in tables:
        for each in table.heard:
            heard.setdefault(each.origin, []).append((table.age_ns - each.age_ns, each))
    found = DeliveryTable(age_ns=age_ns, clock_ns=max(each.clock_ns for each in tables))
    for origin in sorted(heard):
        highest = max(each.highest for _, each in heard[origin])
        found.heard.add(
            origin=origin,
            highest=highest,
            age_ns=max(0, age_ns - min(silent_ns for silent_ns, _ in heard[origin])),
            ended=any(each.ended and each.highest == highest for _, each in heard[origin]),
        )
    return found


def _has_no_parts(origin: Origin, heard: Sequence[Heard], highest: SequenceNumber) -> bool:
    """Whether its stream has ended with that frame, or is one message."""
    if DeadLetterId.of_stream(origin.partition("/")[2]) is not None:
        return True
    return any(each.ended and each.highest == highest for each in heard)
