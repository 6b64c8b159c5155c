"""docs/windows.md, timers.md, joins.md, streams.md: their code runs, and gives what the pages say. time.md has none."""

from __future__ import annotations

import re
from pathlib import Path
from types import ModuleType

import pytest

import bettong
from bettong.application.plan import plan
from bettong.testing import END, AppSession, Reference, check, run, watermark
from bettong.worker.stage_program import program
from tests.samples.page_code import languages, page_module

DOCS = Path(__file__).resolve().parents[2] / "docs"
WITH_CODE = ["windows", "timers", "joins", "streams"]
SECOND = bettong.seconds(1)
MINUTE, HOUR = 60 * SECOND, 3600 * SECOND
OURS = re.compile(r"\bbettong\.(\w+)")


def page(name: str) -> ModuleType:
    return page_module(DOCS / f"{name}.md")


@pytest.mark.parametrize("name", [*WITH_CODE, "time"])
def test_a_page_has_no_code_that_no_test_runs(name: str) -> None:
    path = DOCS / f"{name}.md"
    assert languages(path) == ({"python"} if name in WITH_CODE else set())
    assert [each for each in OURS.findall(path.read_text()) if not hasattr(bettong, each)] == []


@pytest.mark.parametrize("name", WITH_CODE)
def test_the_code_of_a_page_is_an_application_whose_stages_can_run(name: str) -> None:
    for stage in plan(page(name).app).stages:
        program(stage, compiled=False)


def test_windows_of_the_page_give_hours_minutes_and_prices() -> None:
    windows = page("windows")
    clicks = [
        windows.Click("ann", "/", 1),
        windows.Click("bob", "/", 2 * MINUTE),
        windows.Click("ann", "/", 2 * MINUTE + 1),
        windows.Click("ann", "/tea", 3 * MINUTE),
        windows.Click("ann", "/", HOUR),
    ]
    trades = [windows.Trade("ACME", 7.5, 2000), windows.Trade("ACME", 9.5, 10), windows.Trade("IBM", 1.0, 1)]
    outputs = run(windows.app, [("clicks", clicks), ("trades", trades)], until=END).outputs
    assert {(each.key, each.start, each.clicks, each.persons) for each in outputs["page-hours"]} == {
        *(("/", 0, 3, 2), ("/tea", 0, 1, 1), ("/", HOUR, 1, 1))
    }
    minutes = {("/", 0, 1), ("/", 2 * MINUTE, 2), ("/tea", 3 * MINUTE, 1), ("/", HOUR, 1)}
    for sink in ("page-clicks", "page-minutes"):
        assert {(each.key, each.start, each.clicks) for each in outputs[sink]} == minutes
    assert sorted(map(repr, outputs["prices"])) == [
        "Prices(key='ACME', trades=2, large=1, highest_large=7.5)",
        "Prices(key='IBM', trades=1, large=0, highest_large=None)",
    ]


def test_the_timer_of_the_page_fires_a_minute_after_a_step_unless_it_was_approved() -> None:
    timers = page("timers")
    session = AppSession(timers.app)
    session.step(("steps", timers.Step("a", approved=False, time=SECOND)))
    session.step(("steps", timers.Step("b", approved=False, time=2 * SECOND)))
    assert session.step(("steps", timers.Step("b", approved=True, time=3 * SECOND)))["overdue"] == []
    assert session.step(watermark(MINUTE + SECOND - 1))["overdue"] == []
    assert session.step(watermark(MINUTE + SECOND))["overdue"] == [timers.Overdue("a", MINUTE + SECOND)]
    assert session.finish(until=END).outputs["overdue"] == [timers.Overdue("a", MINUTE + SECOND)]


def test_it_makes_no_difference_how_the_steps_of_the_timers_page_are_cut() -> None:
    timers = page("timers")
    times = [(1, False), (2, False), (61, True), (62, False), (90, True), (91, False), (200, True)]
    check(
        timers.app,
        [("steps", timers.Step("ab"[at % 2], approved=yes, time=at * SECOND)) for at, yes in times],
    )


def test_the_joins_of_the_page_find_payments_persons_and_shops() -> None:
    joins = page("joins")
    shops = Reference("sold", [joins.Shop(1, "north"), joins.Shop(2, "south")])
    inputs = [
        shops,
        ("persons", joins.Person(1001, "ann", gone=False)),
        ("persons", joins.Person(2001, "bob", gone=False)),
        ("persons", joins.Person(2001, "bob", gone=True)),
        (
            "orders",
            [joins.Order(1001, 5 * MINUTE), joins.Order(2001, 5 * MINUTE), joins.Order(3001, 5 * MINUTE)],
        ),
        ("payments", [joins.Payment(1001, 50, 6 * MINUTE), joins.Payment(2001, 70, 6 * MINUTE + 1)]),
    ]
    outcome = run(joins.app, inputs, until=END)
    found = {(each.order, each.cents) for each in outcome.outputs["paid-orders"]}
    assert found == {(1001, 50), (2001, 0), (3001, 0)}
    assert outcome.outputs["greetings"] == [joins.Greeting("ann")]
    assert outcome.outputs["sold-orders"] == [joins.Sold(1001, "north"), joins.Sold(2001, "south")]
    assert outcome.outputs["payments-without-order"] == []


def test_a_payment_that_nobody_can_pay_for_any_more_goes_to_the_stream_of_late_ones() -> None:
    joins = page("joins")
    late = joins.Payment(1001, 50, MINUTE)
    inputs = [
        Reference("sold", [joins.Shop(1, "north")]),
        ("orders", joins.Order(1001, 9 * MINUTE)),
        ("payments", joins.Payment(1002, 1, 9 * MINUTE)),
        watermark(9 * MINUTE),
        ("payments", late),
    ]
    assert run(joins.app, inputs, until=END).outputs["payments-without-order"] == [late]
