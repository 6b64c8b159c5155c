"""What is not a timer, or not a function for one, is refused where it is declared."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Annotated, Any

import pytest

import bettong
from bettong import NEVER, Application, Stream, Width
from bettong.application.nodes.stateful import Stateful
from bettong.application.plan import plan
from bettong.application.timers import StateTimer
from bettong.schema.schema import schema_of
from tests.samples.application import refused


@dataclass
class Attempt:
    card: Annotated[str, Width(8)]
    time: int


@dataclass
class Alert:
    card: Annotated[str, Width(8)]


@dataclass
class Card:
    declines: int = 0
    forget_at: bettong.Timer = NEVER
    limit: int = 7


def on_attempt(attempt: Attempt, card: Card) -> Alert | None:
    return None


def forget(fired: bettong.Fired[str], card: Card) -> Alert | None:
    return None


def quietly(fired: bettong.Fired[str], card: Card) -> None:
    pass


def described(state: Any = Card, function: Callable[..., Any] = on_attempt, **more: Any) -> Stream[Any]:
    app = Application("cards")
    return app.source("attempts", schema=Attempt, key="card").stateful(
        function, state=state, name="cards", **more
    )


def timers_of(stream: Stream[Any]) -> tuple[StateTimer, ...]:
    assert isinstance(stream.node, Stateful)
    return stream.node.timers


def only_message(attempt: Attempt, card: Card) -> Alert | None:
    return None


def one_argument(fired: bettong.Fired[str]) -> Alert | None:
    return None


def another_state(fired: bettong.Fired[str], attempt: Attempt) -> Alert | None:
    return None


def another_result(fired: bettong.Fired[str], card: Card) -> Attempt | None:
    return None


def several(fired: bettong.Fired[str], card: Card) -> list[Alert]:
    return []


async def later(fired: bettong.Fired[str], card: Card) -> Alert | None:
    return None


@bettong.compiled
def forget_compiled(fired: bettong.Fired[str], card: Card) -> None:
    pass


@dataclass
class Zero:
    forget_at: bettong.Timer = 0


@dataclass
class Missing:
    forget_at: bettong.LogTimer = field(default=None)  # type: ignore[assignment]


@dataclass(frozen=True)
class Frozen:
    forget_at: bettong.LogTimer = NEVER


@dataclass
class Unknown:
    forget_at: NoSuchTimer = NEVER  # type: ignore[name-defined]  # noqa: F821


@dataclass
class Part:
    parts: list[Part]
    due: bettong.Timer = NEVER


@dataclass
class Within:
    part: Part
    count: int = 0


@dataclass
class WithinList:
    forget_at: bettong.Timer = NEVER
    parts: dict[str, list[Part | None]] = field(default_factory=dict)


@dataclass
class ListOfTimers:
    dues: list[bettong.LogTimer] = field(default_factory=list)


@dataclass
class MaybeTimer:
    due: bettong.Timer | None = None


class Loose:
    forget_at: bettong.Timer = NEVER


def any_state(attempt: Attempt, state: Any) -> Alert | None:
    return None


def any_forget(fired: Any, state: Any) -> None:
    pass


@pytest.mark.parametrize(
    ("options", "texts"),
    [
        ({}, ["Card.forget_at is a timer", "timers={'forget_at': function}"]),
        ({"timers": {}}, ["Card.forget_at is a timer"]),
        ({"timers": forget}, ["timers=", "expected {'field': function}"]),
        (
            {"timers": {"forget_at": forget, "gone": forget}},
            ["Card has no field 'gone'", "timers are forget_at"],
        ),
        ({"timers": {"forget_at": forget, "limit": forget}}, ["Card.limit is no timer", "bettong.LogTimer"]),
        ({"timers": {"forget_at": only_message}}, ["'attempt'", "Fired"]),
        ({"timers": {"forget_at": one_argument}}, ["must take two arguments"]),
        ({"timers": {"forget_at": another_state}}, ["'attempt'", "Card"]),
        ({"timers": {"forget_at": another_result}}, ["return different things"]),
        ({"timers": {"forget_at": several}}, ["return different things"]),
        ({"timers": {"forget_at": later}}, ["async"]),
        ({"timers": {"forget_at": 5}}, ["5 is no function"]),
        ({"timers": {"forget_at": forget_compiled}}, ["mark all of its functions @bettong.compiled"]),
        (
            {"state": Zero, "function": any_state, "timers": {"forget_at": any_forget}},
            ["a new state is 0", "NEVER"],
        ),
        (
            {"state": Missing, "function": any_state, "timers": {"forget_at": any_forget}},
            ["a new state is None"],
        ),
        ({"state": Frozen, "function": any_state, "timers": {"forget_at": any_forget}}, ["Frozen is frozen"]),
        (
            {"state": Unknown, "function": any_state, "timers": {"forget_at": any_forget}},
            ["an annotation of Unknown cannot be resolved", "NoSuchTimer"],
        ),
        (
            {"state": Loose, "function": any_state, "timers": {"forget_at": any_forget}},
            ["has to be a dataclass"],
        ),
        (
            {"state": Within, "function": any_state},
            [
                "Within.part.due is a timer below the fields of the state, where none fires",
                "of Within itself",
            ],
        ),
        (
            {"state": WithinList, "function": any_state, "timers": {"forget_at": any_forget}},
            ["WithinList.parts[][].due is a timer below"],
        ),
        ({"state": ListOfTimers, "function": any_state}, ["ListOfTimers.dues[] is a timer below"]),
        ({"state": MaybeTimer, "function": any_state}, ["MaybeTimer.due is a timer below"]),
        (
            {"state": dict, "function": any_state, "timers": {"forget_at": any_forget}},
            ["has to be a dataclass"],
        ),
    ],
)
def test_what_is_no_timer_is_refused_where_it_is_given(options: dict[str, Any], texts: list[str]) -> None:
    with refused("'cards'", *texts):
        described(**options)


@pytest.mark.parametrize("state", [Card, lambda: Card(limit=3)])
@pytest.mark.parametrize("function", [forget, quietly])
def test_timers_go_in_the_order_of_their_fields(state: Any, function: Callable[..., Any]) -> None:
    function_ = on_attempt if state is Card else any_state
    (timer,) = timers_of(described(state, function_, timers={"forget_at": function}))
    assert (timer.field, timer.clock.value, timer.function) == ("forget_at", "event time", function)


def test_a_state_whose_hints_nobody_can_read_needs_no_timers() -> None:
    assert timers_of(described(Unknown, any_state)) == ()


def test_a_stage_needs_time_where_a_timer_goes_by_it() -> None:
    @dataclass
    class Logged:
        forget_at: bettong.LogTimer = NEVER

    for state, needs_time in ((Card, True), (Logged, False)):
        cards = described(state, any_state, timers={"forget_at": any_forget})
        cards.sink("alerts")
        (stage,) = plan(cards.app).stages
        assert stage.needs_time is needs_time


def test_a_timer_is_a_number_of_64_bits_in_schemas_too() -> None:
    timer, number = schema_of(Card).fields[1], schema_of(Attempt).fields[1]
    assert (timer.kind, timer.dtype, timer.arrow) == (number.kind, number.dtype, number.arrow)
