"""What a page may change, and what is noted of it: requests as questions, answers as events. Pure."""

from __future__ import annotations

import json
from typing import Any

from bettong.frames.dead_letter_id import DeadLetterId
from bettong.inspection.changes import Change, ChangeKind
from bettong_console.errors import ConsoleRequestError
from bettong_console.question import RetryQuestion

# What a person ticks one by one; "all" names none.
IDS_MAX = 1_000
_NAMED_MAX = 3
# Not the name of those that are seen to come: see `changes.added`, which joins these.
SENT_AGAIN = "sent again"
_EXPECTED = 'expected {"ids": ["0.12.3"], "dry_run": true}, or with "ids": "all" and, if wanted, "computation": "NAME"'


def retry_of(body: bytes) -> RetryQuestion:
    """The dead letters that a request wants sent again. Raises ConsoleRequestError for anything but the form above.

    A request that does not say `dry_run` is refused: nobody sends something by a word that was left out.
    """
    try:
        given = json.loads(body)
    except (ValueError, RecursionError):
        raise ConsoleRequestError(400, f"no JSON: {_EXPECTED}") from None
    if not isinstance(given, dict) or not given.keys() <= {"ids", "computation", "dry_run"}:
        raise ConsoleRequestError(400, _EXPECTED)
    dry_run, ids, computation = given.get("dry_run"), given.get("ids"), given.get("computation", "")
    if not isinstance(dry_run, bool) or not isinstance(computation, str):
        raise ConsoleRequestError(400, _EXPECTED)
    if ids == "all":
        return RetryQuestion((), computation, dry_run)
    if not isinstance(ids, list) or not 0 < len(ids) <= IDS_MAX or computation:
        raise ConsoleRequestError(400, f"{_EXPECTED}; at most {IDS_MAX:,} by name")
    return RetryQuestion(tuple(dict.fromkeys(map(_id, ids))), "", dry_run)


def _id(text: object) -> DeadLetterId:
    found = DeadLetterId.of(text) if isinstance(text, str) else None
    if found is None:
        raise ConsoleRequestError(400, f"{str(text)[:40]!r} names no dead letter; expected e.g. 0.12.3")
    return found


def sent_again(who: str, question: RetryQuestion, answer: dict[str, Any], at_s: float) -> Change:
    """The event that somebody has sent dead letters again."""
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
    return Change(
        at_s,
        ChangeKind.MESSAGES,
        SENT_AGAIN,
        "; ".join([*parts, *([answer["fault"]] if answer["fault"] else [])]),
    )


def not_sent(who: str, question: RetryQuestion, why: str, at_s: float) -> Change:
    """The event that somebody wanted to, and has no answer."""
    return Change(
        at_s,
        ChangeKind.MESSAGES,
        SENT_AGAIN,
        f"{_which(question)} were to be, by {who}, and no answer came: {why}",
    )


def _which(question: RetryQuestion) -> str:
    if not question.ids:
        return f"all dead letters{f' of {question.computation}' if question.computation else ''}"
    more = len(question.ids) - _NAMED_MAX
    named = ", ".join(map(str, question.ids[:_NAMED_MAX])) + (f" and {more:,} more" if more > 0 else "")
    return f"dead letter{'s' if len(question.ids) > 1 else ''} {named}"
