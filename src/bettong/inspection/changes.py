"""The changes from one inspection of a deployment to the next, in words. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum

from bettong.inspection.deployment import Inspection
from bettong.inspection.overview import PartitionRow, stands_still
from bettong.inspection.services import DOWN, GIVEN_UP, UNKNOWN, ServiceRow
from bettong.listing import first_texts

CHANGES_MAX = 500
DEAD_LETTERS = "dead letters"
_TOGETHER_S = 10.0
_NAMED_MAX = 3


class ChangeKind(StrEnum):
    """What a change is about."""

    ALERT = "alert"
    SERVICE = "service"
    STATES = "states"
    MESSAGES = "messages"


@dataclass(frozen=True, slots=True)
class Change:
    """What happened, to what, and when it was seen or, if reported, when it happened (Unix s)."""

    at_s: float
    kind: ChangeKind
    what: str
    text: str


def begun(found: Inspection, at_s: float) -> list[Change]:
    """The state of each service at the first inspection, at the time since when it has it. Oldest first."""
    changes = [
        Change(row.since_s if row.since_s is not None else at_s, ChangeKind.SERVICE, row.name, _is(row))
        for row in found.services
    ]
    return sorted(changes, key=lambda each: each.at_s)


def changes_between(before: Inspection, now: Inspection, at_s: float) -> list[Change]:
    """The changes between two inspections."""
    changes = [
        Change(at_s, ChangeKind.SERVICE, what, text)
        for what, text in (*_services(before, now), *_answering(before, now))
    ]
    if not {"redis"} & {*before.away, *now.away}:  # these are read from Redis
        changes += [
            Change(at_s, kind, what, text)
            for kind, found in (
                (ChangeKind.STATES, _workers),
                (ChangeKind.STATES, _partitions),
                (ChangeKind.STATES, _gaps),
                (ChangeKind.MESSAGES, _left_out),
                (ChangeKind.STATES, _references),
                (ChangeKind.MESSAGES, _dead_letters),
            )
            for what, text in found(before, now)
        ]
    return changes


def added(kept: Sequence[Change], new: Sequence[Change]) -> tuple[Change, ...]:
    """The newest CHANGES_MAX. Dead letters in quick succession are one change, with the last of them."""
    found = list(kept)
    for each in new:
        if each.what == DEAD_LETTERS:
            found = [old for old in found if old.what != DEAD_LETTERS or each.at_s - old.at_s > _TOGETHER_S]
        found.append(each)
    return tuple(found[-CHANGES_MAX:])


def _is(row: ServiceRow) -> str:
    return f"{row.state}{f': {row.detail}' if row.detail else ''}"


def _services(before: Inspection, now: Inspection) -> Iterator[tuple[str, str]]:
    rows, old = {row.name: row for row in now.services}, {row.name: row for row in before.services}
    for name, row in rows.items():
        was = old.get(name)
        if was is not None and UNKNOWN in {row.state, was.state}:
            continue  # Redis is away, or was: a change is unknown
        if was is None:
            yield name, f"is there, {_is(row)}"
            continue
        if row.state != was.state:
            yield name, f"was {was.state}, is {_is(row)}"
        restarts, restarts_before = (
            each.process.restarts if each.process is not None else 0 for each in (row, was)
        )
        if restarts > restarts_before and row.state == was.state not in {DOWN, GIVEN_UP}:
            fault = row.process.fault if row.process is not None else ""
            yield name, f"was started again{f', after: {fault}' if fault else ''}"
    for name in old.keys() - rows.keys():
        yield name, f"is gone, was {old[name].state}"


def _answering(before: Inspection, now: Inspection) -> Iterator[tuple[str, str]]:
    for name in set(now.away) - set(before.away):
        yield name, "does not answer"
    for name in set(before.away) - set(now.away):
        yield name, "answers again"


def _workers(before: Inspection, now: Inspection) -> Iterator[tuple[str, str]]:
    """Slots with a new task. Where that took longer than an inspection's interval, their partitions had no owner
    meanwhile: see `_partitions`.
    """
    old = before.incarnations
    new = sorted(slot for slot, task in now.incarnations.items() if slot in old and old[slot] != task)
    if new:
        yield "workers", "ended and were replaced: " + _first([f"slot {slot}" for slot in new])


def _partitions(before: Inspection, now: Inspection) -> Iterator[tuple[str, str]]:
    old = {row.id: row for row in before.partitions}
    pairs = [(old[row.id], row) for row in now.partitions if row.id in old]
    moved = [(was, row) for was, row in pairs if row.slot != was.slot]
    if moved:
        yield "partitions", _first([f"{row.id} from {_slot(was)} to {_slot(row)}" for was, row in moved])
    still = [row for was, row in pairs if stands_still(row) and not stands_still(was)]
    if still:
        yield (
            "partitions",
            "stand still: " + _first([f"{row.id} at offset {row.offset:,}" for row in still]),
        )
    going = [row for was, row in pairs if stands_still(was) and not stands_still(row)]
    if going:
        yield "partitions", "make progress again: " + _first([str(row.id) for row in going])
    unsaved = [row for was, row in pairs if row.snapshot_fault and not was.snapshot_fault]
    if unsaved:
        yield "snapshots", "not saved: " + _first([f"{row.id}: {row.snapshot_fault}" for row in unsaved])
    saved = [row for was, row in pairs if was.snapshot_fault and not row.snapshot_fault]
    if saved:
        yield "snapshots", "saved again: " + _first([str(row.id) for row in saved])
    for was, row in pairs:
        if row.fault and row.fault != was.fault:
            yield str(row.id), f"is held up: {row.fault}"


def _gaps(before: Inspection, now: Inspection) -> Iterator[tuple[str, str]]:
    gaps, gaps_before = (len(each.overview.gaps) for each in (now, before))
    if gaps > gaps_before:
        yield "partitions", f"{gaps} wait for a lost frame: {_first(now.overview.gaps)}"
    elif gaps < gaps_before:
        yield "partitions", f"{gaps_before - gaps} no longer wait for a lost frame"


def _left_out(before: Inspection, now: Inspection) -> Iterator[tuple[str, str]]:
    for text in set(now.overview.left_out) - set(before.overview.left_out):
        yield "left out", text


def _references(before: Inspection, now: Inspection) -> Iterator[tuple[str, str]]:
    for text in set(now.overview.references) - set(before.overview.references):
        yield "reference tables", f"are out of date: {text}"


def _dead_letters(before: Inspection, now: Inspection) -> Iterator[tuple[str, str]]:
    grown = now.overview.dead_letters - before.overview.dead_letters
    if grown > 0:
        last = now.overview.dead_letter_last
        yield DEAD_LETTERS, f"{now.overview.dead_letters:,} in all{f', the last: {last}' if last else ''}"


def _slot(row: PartitionRow) -> str:
    return "no slot" if row.slot is None else f"slot {row.slot}"


def _first(texts: Sequence[str]) -> str:
    return first_texts(texts, _NAMED_MAX)
