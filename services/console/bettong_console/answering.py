"""The separate process that answers one question: loads the application, reads the log, sends the answer.

`performing` makes changes.
"""

from __future__ import annotations

import itertools
import json
import signal
from collections import deque
from collections.abc import Sequence
from multiprocessing.connection import Connection
from typing import Any

from bettong.application.application import Application
from bettong.application.plan import Plan, Stage, plan
from bettong.errors import BettongError, ClusterUnavailableError, LogError, LogTruncatedError, StoreError
from bettong.inspection.dead_letters import matching, page
from bettong.inspection.json_lines import dead_letter_json, event_json
from bettong.inspection.key_history import Event
from bettong.inspection.live.application import loaded_application
from bettong.inspection.live.dead_letters import DeadLetterLog
from bettong.inspection.live.key_history import folded, history_of, kept_snapshots, log_of, stretch_of
from bettong.inspection.live.recorded_case import recorded_case
from bettong.inspection.live.source_logs import source_stages
from bettong.inspection.message_keys import key_of
from bettong.local.locations import FoundLocations
from bettong.schema.key_types import KeyValue
from bettong_console.errors import ConsoleRequestError
from bettong_console.performing import reset, retried, scaled
from bettong_console.question import (
    CaseQuestion,
    DeadLettersQuestion,
    KeyQuestion,
    Question,
    ResetQuestion,
    RetryQuestion,
    ScaleQuestion,
)

# As many as a person reads; `bettong replay --last` shows more.
_EVENTS_MAX = 200
# States may be large, and each event has two; the console keeps the whole answer in memory, and a browser draws it.
_EVENTS_BYTES_MAX = 8_000_000
_DEAD_LETTERS_MAX = 100
# Nobody pastes a longer test.
_CASE_CHARACTERS_MAX = 1_000_000
# Longer than the console waits for an answer.
ALARM_S = 90


def answer(question: Question, application: str, where: FoundLocations, sending: Connection) -> None:
    """Sends (status of HTTP, text) once: the answer as JSON, or why there is none. Ends the process after ALARM_S."""
    signal.alarm(ALARM_S)  # a console that was killed cannot end this process
    try:
        sending.send((200, json.dumps(_found(question, application, where))))
    except ConsoleRequestError as error:
        sending.send((error.status, str(error)))
    except BettongError as error:
        is_away = isinstance(error, LogError | StoreError | ClusterUnavailableError)
        sending.send((503 if is_away and not isinstance(error, LogTruncatedError) else 422, str(error)))


def _found(question: Question, application: str, where: FoundLocations) -> dict[str, Any]:
    if isinstance(question, ScaleQuestion):
        return scaled(question)
    app = loaded_application(application)
    planned = plan(app)
    match question:
        case KeyQuestion():
            return _key_history(question, planned, where)
        case CaseQuestion():
            return _case(question, app, planned, where)
        case DeadLettersQuestion():
            return _dead_letters(question, planned, where)
        case RetryQuestion():
            return retried(question, planned, where)
        case ResetQuestion():
            return reset(question, planned, where)


def _key_history(question: KeyQuestion, planned: Plan, where: FoundLocations) -> dict[str, Any]:
    stage = _stage(planned, question.stage)
    key = _key(stage, question.key)
    here = where.on_this_machine()
    log = log_of(planned, stage, key, here)
    stretch = stretch_of(planned, log, here, log.end, from_snapshot=not question.whole)
    history = history_of(planned, key, here, stretch)
    snapshots = kept_snapshots(planned, stretch, here)  # before newer ones replace them
    events: deque[Event] = deque(maxlen=_EVENTS_MAX)
    total = 0
    for each in folded(history, stretch, here):
        events.extend(each)
        total += len(each)
    return {
        "stage": stage.name,
        "key": question.key,
        "partition": log.partition,
        "partitions": log.partitions,
        "first": stretch.first,
        "until": history.next_offset,
        "from_snapshot": stretch.snapshot is not None,
        "snapshots": snapshots,
        "begin": log.begin,
        "total": total,
        "stopped": str(history.stopped) if history.stopped is not None else None,
        "events": newest_within([_event(each) for each in events], _EVENTS_BYTES_MAX),
    }


def _case(question: CaseQuestion, app: Application, planned: Plan, where: FoundLocations) -> dict[str, Any]:
    stage = _stage(planned, question.stage)
    fed = [each.name for each in source_stages(planned)]
    if stage.name not in fed:
        raise ConsoleRequestError(
            422,
            f"no client feeds stage {stage.name}: make the test from a key of {', '.join(fed)}, which leads to it",
        )
    text = recorded_case(app, planned, [stage], where.on_this_machine(), key=_key(stage, question.key))
    if len(text) > _CASE_CHARACTERS_MAX:
        raise ConsoleRequestError(
            422,
            f"the test would have {len(text):,} characters: bettong log --key --test --since narrows it to a time",
        )
    return {"stage": stage.name, "key": question.key, "text": text}


def newest_within(events: Sequence[dict[str, Any]], bytes_max: int) -> list[dict[str, Any]]:
    """The last events whose JSON together has at most `bytes_max`; none where the last alone has more."""
    kept: list[dict[str, Any]] = []
    left = bytes_max
    for event in reversed(events):
        left -= len(json.dumps(event))
        if left < 0:
            break
        kept.append(event)
    return kept[::-1]


def _event(event: Event) -> dict[str, Any]:
    values: dict[str, Any] = json.loads(event_json(event))
    return values | {"time_s": event.time_ns / 1e9}


def _stage(planned: Plan, name: str) -> Stage:
    names = [stage.name for stage in planned.stages]
    if not name and len(names) > 1:
        raise ConsoleRequestError(400, f"give the stage, one of {', '.join(names)}")
    if name and name not in names:
        raise ConsoleRequestError(404, f"there is no stage {name[:80]!r}, only {', '.join(names)}")
    return planned.stage(name or names[0])


def _key(stage: Stage, text: str) -> KeyValue:
    keyed = [entry for entry in stage.inputs if entry.key is not None]
    if not keyed:
        raise ConsoleRequestError(422, f"stage {stage.name} has no keys: its source has none")
    faults = []
    for entry in keyed:
        try:
            return key_of(entry, text)
        except ValueError as error:
            faults.append(f"{entry.stream}: {error}")
    raise ConsoleRequestError(422, f"{text[:80]!r} is not a key of stage {stage.name}: {'; '.join(faults)}")


def _dead_letters(question: DeadLettersQuestion, planned: Plan, where: FoundLocations) -> dict[str, Any]:
    log = DeadLetterLog(where.kafka, planned.application, frame_bytes_max=where.frame_bytes_max)
    found = matching(log.dead_letters(), question.computation or None, None)
    newest, counts = page(found, _DEAD_LETTERS_MAX, None)
    retried = log.retried() if newest else {}
    return {
        "total": counts.total(),
        "by_computation": dict(itertools.islice(sorted(counts.items()), 100)),
        "dead_letters": [
            json.loads(dead_letter_json(each, retried.get(each.id))) | {"time_s": each.time_ns / 1e9}
            for each in newest
        ],
    }
