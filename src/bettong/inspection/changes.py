"""What has happened between two looks at a deployment: services that came or went, partitions that moved. Pure."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from enum import StrEnum

from bettong.identifiers import PartitionId
from bettong.inspection.measures import Moment
from bettong.inspection.overview import stands_still
from bettong.inspection.services import DOWN, GIVEN_UP, RUNNING, SILENT
from bettong.metrics import STANDBY

# So many partitions that moved are named in one line.
_NAMED_MAX = 4


class Weight(StrEnum):
    """How a person is to take it."""

    GOOD = "good"
    PLAIN = "plain"
    BAD = "bad"


@dataclass(frozen=True, slots=True)
class Change:
    """Something that happened before `time_s` (Unix s), and after the look before: `kind` in a word, and a sentence."""

    time_s: float
    kind: str
    weight: Weight
    text: str


def changes(before: Moment, now: Moment) -> list[Change]:
    """All that differ, services first."""
    found = [*_services(before, now), *_moved(before, now), *_still(before, now), *_counted(before, now)]
    return [Change(now.time_s, kind, weight, text) for kind, weight, text in found]


_Found = tuple[str, Weight, str]


def _services(before: Moment, now: Moment) -> Iterator[_Found]:
    old = {row.name: row for row in before.found.services}
    new = {row.name: row for row in now.found.services}
    for name, row in new.items():
        last = old.get(name)
        good = row.state in {RUNNING, STANDBY}
        weight = (
            Weight.GOOD if good else Weight.BAD if row.state in {DOWN, GIVEN_UP, SILENT} else Weight.PLAIN
        )
        detail = f": {row.detail}" if row.detail else ""
        if last is None or last.state != row.state:
            yield "service", weight, f"{name} is {row.state}{detail}"
        elif row.since_s is not None and last.since_s is not None and row.since_s > last.since_s + 1.0:
            yield "restart", Weight.PLAIN, f"{name} has started again, and is {row.state}"
    for name in old.keys() - new.keys():
        yield "service", Weight.BAD, f"{name} says nothing any more"


def _moved(before: Moment, now: Moment) -> Iterator[_Found]:
    old, new = before.answers.slots, now.answers.slots
    moved = sorted(each for each, slot in new.items() if each in old and old[each] != slot)
    if moved:
        shown = ", ".join(f"{each} to slot {new[each]}" for each in moved[:_NAMED_MAX])
        more = f" and {len(moved) - _NAMED_MAX:,} more" if len(moved) > _NAMED_MAX else ""
        yield "rescale", Weight.PLAIN, f"{len(moved):,} partitions moved: {shown}{more}"


def _still(before: Moment, now: Moment) -> Iterator[_Found]:
    def still(moment: Moment) -> dict[PartitionId, float]:
        return {
            PartitionId(row.stage, row.partition): row.stalled_s or 0.0
            for row in moment.found.partitions
            if stands_still(row)
        }

    old, new = still(before), still(now)
    for each in sorted(new.keys() - old.keys())[:_NAMED_MAX]:
        nobody = ", for nobody folds it" if new[each] == math.inf else ""
        yield "stall", Weight.BAD, f"{each} stands still{nobody}"
    for each in sorted(old.keys() - new.keys())[:_NAMED_MAX]:
        yield "stall", Weight.GOOD, f"{each} moves again"


def _counted(before: Moment, now: Moment) -> Iterator[_Found]:
    grown = now.found.overview.dead_letters - before.found.overview.dead_letters
    if grown > 0:
        last = (
            f"; the last: {now.found.overview.dead_letter_last}"
            if now.found.overview.dead_letter_last
            else ""
        )
        yield "dead letter", Weight.BAD, f"{grown:,} messages could not be processed{last}"
    for text in sorted(set(now.found.overview.left_out) - set(before.found.overview.left_out)):
        yield "left out", Weight.BAD, f"left out, for it killed workers: {text}"
    for text in sorted(set(now.found.unknown) - set(before.found.unknown)):
        yield "away", Weight.BAD, text
