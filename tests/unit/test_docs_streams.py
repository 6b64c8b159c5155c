"""docs/streams.md: its code runs, and describes an application that can be planned."""

from pathlib import Path

from bettong.application.plan import plan
from bettong.testing import run
from tests.samples.page_code import page_module

ROOT = Path(__file__).resolve().parents[2]


def test_the_code_of_the_page_is_an_application() -> None:
    planned = plan(page_module(ROOT / "docs" / "streams.md").app)
    assert {sink.name for sink in planned.sinks} == {
        *("values", "large-trades", "small-values", "totals", "by-venue", "unpriced", "audited", "below-bid")
    }


def test_one_function_takes_the_messages_of_a_merge_in_the_order_of_the_log() -> None:
    page = page_module(ROOT / "docs" / "streams.md")
    low, high = page.Trade("ACME", 1, 9.0, 1), page.Trade("ACME", 1, 11.0, 1)
    inputs = [("trades", low), ("quotes", page.Quote("ACME", 10.0)), ("trades", high), ("trades", low)]
    assert run(page.app, inputs).outputs["below-bid"] == [low]
