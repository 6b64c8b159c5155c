"""Changes from a page: requests as questions, answers as events. Pure."""

from __future__ import annotations

import json
from typing import Any

from bettong.frames.dead_letter_id import DeadLetterId
from bettong.inspection.changes import Change, ChangeKind
from bettong_console.errors import ConsoleRequestError
from bettong_console.question import ChangeQuestion, ResetQuestion, RetryQuestion, ScaleQuestion

# More than a person ticks one by one; "all" names none.
IDS_MAX = 1_000
# As many as `bettong k8s scale` takes; the number of partitions is the real bound.
WORKERS_MAX = 4_096
_NAMED_MAX = 3
# Statuses of requests that were refused before anything was done; after others the outcome is unknown.
_REFUSED = range(400, 500)
_RETRY = 'expected {"ids": ["0.12.3"], "dry_run": true}, or with "ids": "all" and, if wanted, "computation": "NAME"'
_SCALE = f'expected {{"workers": 4, "dry_run": true}}, with 0 to {WORKERS_MAX:,} workers; null asks how many there are'
_RESET = 'expected {"application": "NAME", "dry_run": true}'


def retry_of(body: bytes) -> RetryQuestion:
    """The dead letters that a request wants sent again. Raises ConsoleRequestError unless it has the form above."""
    given, dry_run = _given(body, {"ids", "computation"}, _RETRY)
    ids, computation = given.get("ids"), given.get("computation", "")
    if not isinstance(computation, str):
        raise ConsoleRequestError(400, _RETRY)
    if ids == "all":
        return RetryQuestion((), computation, dry_run)
    if not isinstance(ids, list) or not 0 < len(ids) <= IDS_MAX or computation:
        raise ConsoleRequestError(400, f"{_RETRY}; at most {IDS_MAX:,} by name")
    return RetryQuestion(tuple(dict.fromkeys(map(_id, ids))), "", dry_run)


def scale_of(body: bytes, release: str | None) -> ScaleQuestion:
    """How many workers a request wants a release to have; see `retry_of`."""
    given, dry_run = _given(body, {"workers"}, _SCALE)
    workers = given.get("workers")
    if workers is None:
        if not dry_run:
            raise ConsoleRequestError(400, _SCALE)
    elif type(workers) is not int or not 0 <= workers <= WORKERS_MAX:  # True is an int, too
        raise ConsoleRequestError(400, _SCALE)
    if release is None:
        raise ConsoleRequestError(
            422, "the release is not known here: BETTONG_CONSOLE_RELEASE names a release of the chart"
        )
    return ScaleQuestion(release, workers, dry_run)


def reset_of(body: bytes, application: str) -> ResetQuestion:
    """A request to reset the states of the application, which it must name. See `retry_of`."""
    given, dry_run = _given(body, {"application"}, _RESET)
    name = given.get("application")
    if not isinstance(name, str):
        raise ConsoleRequestError(400, _RESET)
    if name != application:
        raise ConsoleRequestError(
            422, f"{name[:80]!r} is not the name of the application: expected {application}"
        )
    return ResetQuestion(dry_run)


def changed(who: str, question: ChangeQuestion, answer: dict[str, Any], at_s: float) -> Change:
    """The event of a change that somebody made."""
    return _change(question, _done(who, question, answer), at_s)


def not_changed(who: str, question: ChangeQuestion, error: ConsoleRequestError, at_s: float) -> Change:
    """The event of a change that was refused, or got no answer."""
    how = "it was refused" if error.status in _REFUSED else "no answer came"
    return _change(question, f"{_wanted(question)}, by {who}, and {how}: {error}", at_s)


def _given(body: bytes, names: set[str], expected: str) -> tuple[dict[str, Any], bool]:
    """The fields of a request, and its `dry_run`.

    A request without `dry_run` is refused: leaving it out must not change anything.
    """
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise ConsoleRequestError(400, f"not JSON: {expected}") from None
    if not isinstance(given, dict) or not given.keys() <= names | {"dry_run"}:
        raise ConsoleRequestError(400, expected)
    if not isinstance(given.get("dry_run"), bool):
        raise ConsoleRequestError(400, expected)
    return given, given["dry_run"]


def _id(text: object) -> DeadLetterId:
    found = DeadLetterId.of(text) if isinstance(text, str) else None
    if found is None:
        raise ConsoleRequestError(
            400, f"{str(text)[:40]!r} is not the id of a dead letter; expected e.g. 0.12.3"
        )
    return found


def _change(question: ChangeQuestion, text: str, at_s: float) -> Change:
    match question:
        case RetryQuestion():
            # Not the name of changes for new dead letters: `changes.added` joins these.
            return Change(at_s, ChangeKind.MESSAGES, "sent again", text)
        case ScaleQuestion():
            return Change(at_s, ChangeKind.STATES, "workers scaled", text)
        case ResetQuestion():
            return Change(at_s, ChangeKind.STATES, "states reset", text)


def _done(who: str, question: ChangeQuestion, answer: dict[str, Any]) -> str:
    match question:
        case RetryQuestion():
            return _sent(who, question, answer)
        case ScaleQuestion():
            return (
                f"from {answer['before']:,} to {answer['workers']:,} in release {question.release}, by {who}"
            )
        case ResetQuestion():
            return f"all snapshots are deleted, by {who}; the next start folds {answer['records']:,} records again"


def _wanted(question: ChangeQuestion) -> str:
    match question:
        case RetryQuestion():
            return f"{_which(question)} were to be"
        case ScaleQuestion():
            return f"there were to be {question.workers:,} in release {question.release}"
        case ResetQuestion():
            return "all snapshots were to be deleted"


def _sent(who: str, question: RetryQuestion, answer: dict[str, Any]) -> str:
    parts = [f"{answer['sent']:,} of {_which(question)}, by {who}"]
    parts += [
        f"{answer[name]:,} {words}"
        for name, words in (
            ("refused", "of them refused again"),
            ("already", "were sent before"),
            ("held", "cannot be sent again"),
        )
        if answer[name]
    ]
    return "; ".join([*parts, *([answer["fault"]] if answer["fault"] else [])])


def _which(question: RetryQuestion) -> str:
    if not question.ids:
        return f"all dead letters{f' of {question.computation}' if question.computation else ''}"
    more = len(question.ids) - _NAMED_MAX
    named = ", ".join(map(str, question.ids[:_NAMED_MAX])) + (f" and {more:,} more" if more > 0 else "")
    return f"dead letter{'s' if len(question.ids) > 1 else ''} {named}"
