"""What cannot be joined is refused when the application is built; and what `bettong check` says of joins."""

from __future__ import annotations

import io
from typing import Any

import pytest
from rich.console import Console

import bettong
from bettong import Application
from bettong.application.plan import plan
from bettong.application.streams import JoinedStream
from bettong.cli.check import tree
from tests.samples.joins import Event, Pair, joined, us, within

Joins = JoinedStream[Any, Any, Any]


def both(left: Event, right: Event) -> Pair:
    return Pair(left.key, left.value, right.value)


def keyed(app: Application, name: str, key: Any = "key") -> bettong.Stream[Event]:
    return app.source(name, schema=Event, key=key, event_time="at")


def by_text(event: Event) -> str:
    return str(event.key)


def refuse(left_key: Any, right_key: Any, **more: Any) -> Joins:
    app = Application("meters")
    return keyed(app, "lefts", left_key).join_within(
        keyed(app, "rights", right_key), us(0), us(1), both, **more
    )


def needs_both(left: Event, right: Event) -> Pair:
    return Pair(left.key, left.value, right.value)


def returns_nothing(left: Event, right: Event) -> None:
    del left, right


def returns_many(left: Event, right: Event) -> list[Pair]:
    return [Pair(left.key, left.value, right.value)]


def plain(method: str, *arguments: Any, **more: Any) -> Joins:
    app = Application("meters")
    left, right = keyed(app, "lefts"), keyed(app, "rights")
    made: Joins = getattr(left, method)(right, *arguments, **more)
    return made


@pytest.mark.parametrize(
    ("made", "complaints"),
    [
        (lambda: refuse("key", None), ["'lefts' and 'rights'", "'rights' has none", "key_by"]),
        (
            lambda: refuse(by_text, "key"),
            ["'lefts' and 'rights'", "different types", "lefts (text)", "key_by"],
        ),
        (lambda: plain("join_within", us(2), us(1), both), ["lower=0:00:00.000002 is more than upper"]),
        (lambda: plain("join_within", 2, us(1), both), ["lower=2; expected a datetime.timedelta"]),
        (lambda: plain("join_within", us(1), us(2), both, how="full"), ["how='full'", "'outer'"]),
        (lambda: plain("join_latest", both, how="right"), ["how='right'", "'inner', 'left'"]),
        (lambda: plain("join_latest", both, delete_when="value"), ["no bool field of Event", "right, gone"]),
        (lambda: plain("join_latest", both).late, ["'both': .late", "order of messages"]),
        (lambda: plain("join_as_of", both, tolerance=us(-1)), ["tolerance="]),
        (lambda: plain("join_as_of", needs_both, how="left"), ["'right' is None", "Event | None"]),
        (lambda: plain("join_window", bettong.counts(3), both), ["no window of a join"]),
        (lambda: plain("join_as_of", returns_nothing), ["combine returns None"]),
        (lambda: plain("join_as_of", returns_many), ["one message for a pair"]),
        (
            lambda: plain("join_as_of", lambda left, _: left),
            ["a lambda does not say what it returns, so write it as def function(left: Event, _"],
        ),
        (
            lambda: keyed(Application("meters"), "lefts").join_as_of(
                keyed(Application("other"), "rights"), both
            ),
            ["no stream of this application"],
        ),
    ],
)
def test_what_cannot_be_joined_is_refused_when_the_application_is_built(
    made: Any, complaints: list[str]
) -> None:
    with pytest.raises(bettong.ApplicationError) as refused:
        made()
    assert [each for each in complaints if each not in str(refused.value)] == [], str(refused.value)


def test_check_says_what_is_joined_how() -> None:
    app = joined(within(-2, 3, "left"))
    shown = io.StringIO()
    Console(file=shown, width=200).print(tree(plan(app)))
    assert (
        "join_within pairs: is_left + entry -> Pair, left, lower -0:00:00.000002, upper 0:00:00.000003"
        in shown.getvalue()
    )
    assert "late pairs-late-left" in shown.getvalue()
