"""docs/streams.md: its code runs, and describes an application that can be planned."""

from pathlib import Path

from bettong.application.plan import plan
from tests.samples.page_code import page_module

ROOT = Path(__file__).resolve().parents[2]


def test_the_code_of_the_page_is_an_application() -> None:
    planned = plan(page_module(ROOT / "docs" / "streams.md").app)
    assert {sink.name for sink in planned.sinks} == {
        *("values", "large-trades", "small-values", "totals", "by-venue", "unpriced", "audited")
    }
