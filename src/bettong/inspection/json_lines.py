"""Findings as lines of JSON: dead letters and their reasons, events of a key, states. Pure."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from bettong.frames.text import dead_letter_values, to_json
from bettong.inspection.text import moment

if TYPE_CHECKING:
    from bettong.inspection.dead_letters import Found, ResendMark
    from bettong.inspection.key_history import Event
    from bettong.inspection.reason_counts import ReasonRow
    from bettong.inspection.states import KeyState


def dead_letter_json(found: Found, mark: ResendMark | None) -> str:
    """All fields of a dead letter, as one line."""
    dead_letter = found.dead_letter
    values = {
        "id": str(found.id),
        "taken_in": moment(found.time_ns),
        **dead_letter_values(dead_letter),
        "as_received": dead_letter.as_received,
        "truncated": dead_letter.truncated,
        "message_truncated": found.message_truncated,
        "sent_again": mark is not None and mark.done,
    }
    return to_json(values)


def reason_json(row: ReasonRow) -> str:
    """The number of dead letters of one computation and reason, and the newest one, as one line."""
    values = {
        "computation": row.key.computation,
        "reason": row.key.reason,
        "count": row.count,
        "newest": row.last_id,
        "taken_in": moment(row.last_ns),
        "origin": row.last_origin,
    }
    return to_json(values)


def event_json(event: Event) -> str:
    """All fields of an event, as one line."""
    values = {
        "offset": event.offset,
        "origin": event.origin,
        "sequence": event.sequence,
        "index": event.index,
        "taken_in": moment(event.time_ns),
        "verdict": event.verdict,
        "message": json.loads(event.message),
        "states": [
            {"computation": step.computation, "before": step.before, "after": step.after}
            for step in event.steps
        ],
        "outputs": [{"to": target, "message": json.loads(message)} for target, message in event.outputs],
        "failures": [
            {"computation": computation, "on_error": policy, "reason": reason}
            for computation, policy, reason in event.failures
        ],
    }
    return to_json(values)


def state_json(found: KeyState) -> str:
    """One state of a key, as one line."""
    values = {
        "stage": found.stage,
        "computation": found.computation,
        "partition": found.partition,
        "offset": found.offset,
        "key": found.key,
        "state": found.state,
    }
    return to_json(values)
