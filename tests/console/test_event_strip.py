"""Events on the axis of time: a mark each, of its kind, where it belongs, reached by keyboard."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from dataclasses import replace

import pytest
from playwright.sync_api import Locator, Page, expect

from bettong.inspection.changes import Change, ChangeKind
from bettong_console.board import Board
from bettong_console.views import events
from tests.console.recordings import recorded
from tests.console.sites import Served, recorded_site, served
from tests.console.test_browser import axe_finds_nothing, fits_everywhere

MARKUP = "<img src=x onerror=alert(1)>"
# How many seconds ago.
HAPPENED = (
    Change(1500, ChangeKind.SERVICE, "receiver", "was running, is down"),
    Change(200, ChangeKind.ALERT, "alert", f"receiver: down {MARKUP}; see its log"),
    Change(110, ChangeKind.ALERT, "alert over", "receiver: down (it lasted 90 s)"),
    Change(82, ChangeKind.STATES, "partitions", "clicks/0 from slot 0 to slot 1"),
    Change(80, ChangeKind.STATES, "partitions", "clicks/1 from slot 0 to slot 1"),
    Change(30, ChangeKind.MESSAGES, "dead letters", "4 in all"),
)


@pytest.fixture
def site() -> Iterator[Served]:
    """A site that has just looked; name it before `page`, which is to close first."""
    now_s = time.time()
    later_s = now_s - recorded("visits")[-1].time_s
    looks = [replace(each, time_s=each.time_s + later_s) for each in recorded("visits")]
    with served(recorded_site(looks=looks)) as found:
        found.note(replace(each, at_s=now_s - each.at_s) for each in HAPPENED)
        yield found


def marks(page: Page, kind: str) -> Locator:
    return page.get_by_role("group", name=re.compile(f"^{kind}: ")).get_by_role("link")


def place_of(mark: Locator) -> float:
    """How far to the right it is, as a share of the axis."""
    found = mark.evaluate("each => parseFloat(each.style.getPropertyValue('left'))")
    return float(found) / 100


def test_each_change_is_a_mark_of_its_kind_where_it_happened(site: Served, page: Page) -> None:
    page.goto(f"{site.url}/events")
    expect(page.locator(".strip .mark")).to_have_count(4)
    expect(marks(page, "Alerts")).to_have_count(2)
    over, began = marks(page, "Alerts").all()
    expect(began).to_have_class("mark begun")
    expect(over).to_have_class("mark over")
    expect(began).to_have_accessible_name(
        re.compile(re.escape(f"alert receiver: down {MARKUP}; see its log"))
    )
    assert page.locator(".strip img").count() == 0
    moved = marks(page, "Workers and states")
    expect(moved).to_have_text("2")
    expect(moved).to_have_accessible_name(re.compile("2 changes, the last: partitions clicks/1"))
    expect(marks(page, "Services")).to_have_count(0)
    first, last = place_of(began), place_of(over)
    assert last - first == pytest.approx(90 / 300, abs=0.001)
    fits_everywhere(page)
    axe_finds_nothing(page)


def test_a_longer_span_stands_in_the_address_and_shows_what_was_before(site: Served, page: Page) -> None:
    page.goto(f"{site.url}/events")
    page.locator(".spans").get_by_role("link", name="1 hour").click()
    expect(page).to_have_url(f"{site.url}/events?span=1h")
    expect(marks(page, "Services")).to_have_count(1)
    expect(marks(page, "Alerts")).to_have_count(1)
    expect(marks(page, "Alerts")).to_have_class("mark begun")
    page.goto(f"{site.url}/events?span=<b>&at=<b>")
    expect(page.locator(".spans [aria-current]")).to_have_text("5 min")
    expect(page.locator(".timeline > [aria-current]")).to_have_count(0)


def test_a_mark_that_is_chosen_by_keyboard_leads_to_its_change(site: Served, page: Page) -> None:
    page.goto(f"{site.url}/events")
    letters = marks(page, "Messages")
    expect(letters).to_have_count(1)
    marks(page, "Workers and states").focus()
    page.keyboard.press("Tab")
    expect(letters).to_be_focused()
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{site.url}/events?at={site.site.board.changes[-1].at_s}-messages")
    chosen = page.locator(".timeline > [aria-current]")
    expect(chosen).to_contain_text("dead letters 4 in all")
    expect(chosen).to_be_in_viewport()
    expect(letters).to_have_attribute("aria-current", "true")
    axe_finds_nothing(page)


def test_of_two_changes_at_one_moment_the_mark_leads_to_its_own(site: Served, page: Page) -> None:
    at_s = time.time() - 60
    site.note(
        [
            Change(at_s, ChangeKind.SERVICE, "processor", "a worker is gone"),
            Change(at_s, ChangeKind.STATES, "partitions", "clicks/2 from slot 0 to slot 1"),
        ]
    )
    page.goto(f"{site.url}/events")
    marks(page, "Services").press("Enter")
    chosen = page.locator(".timeline > [aria-current]")
    expect(chosen).to_have_count(1)
    expect(chosen).to_contain_text("a worker is gone")
    expect(page.locator(".strip [aria-current]")).to_have_count(1)


def test_what_is_not_known_is_hatched_and_said(site: Served, page: Page) -> None:
    page.goto(f"{site.url}/events?span=1d")
    expect(page.locator(".strip .unlooked")).to_have_count(1)
    expect(page.locator(".strip > p")).to_contain_text("incomplete")


def test_changes_are_all_known_since_the_first_look_or_the_oldest_that_is_sent() -> None:
    first_s, last_s = recorded("visits")[0].time_s, recorded("visits")[-1].time_s
    board = Board("visits")
    for look in recorded("visits"):
        board.add(look.time_s, look.time_s, look.answers)
    assert board.known is not None
    assert events(board, board.known, last_s)["complete_since_s"] == first_s
    for second in range(150):
        board.note(Change(last_s + second, ChangeKind.SERVICE, "kafka", "does not answer"))
    found = events(board, board.known, last_s + 150)
    assert found["complete_since_s"] == found["changes"][-1]["at_s"] == last_s + 50
