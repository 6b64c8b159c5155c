"""The page's numbers about where the time goes, and its text where they are not measured."""

from __future__ import annotations

import httpx2
from playwright.sync_api import Page, expect

from tests.console.recordings import explained, recorded, timed, unmeasured
from tests.console.sites import recorded_site, served


def test_a_computation_says_how_busy_it_is_and_what_a_frame_takes_there(page: Page) -> None:
    with served(recorded_site(looks=[*map(timed, recorded("visits"))])) as own:
        page.goto(f"{own.url}/application?box=computation:Visits")
        expect(page.get_by_title("Visits", exact=True)).to_contain_text("window · 24.0% busy")
        numbers = page.locator(".numbers").nth(2)
        expect(numbers).to_contain_text("0.61ms")
        expect(numbers).to_contain_text("3.10ms")
        expect(page.get_by_title("Hour", exact=True)).not_to_contain_text("busy")
        now = httpx2.get(f"{own.url}/api/now?view=partitions").json()["workers"]
        page.goto(f"{own.url}/partitions")
        slots = page.locator("table:not(.pinned):not(.windows) tbody tr")
        expect(slots).to_have_count(len(now))
        for slot, each in zip(slots.all(), now, strict=True):
            expect(slot.locator("td").nth(3)).to_have_text(f"{100 * each['busy_share']:.1f}%")
        page.goto("about:blank")


def test_what_is_not_measured_is_said_not_to_be(page: Page) -> None:
    why = "not measured (BETTONG_MEASURES=off)"
    looks = [*map(unmeasured, recorded("visits"))]
    with served(recorded_site(looks=looks)) as own:
        page.goto(own.url)
        expect(page.get_by_text(f"The parts of the latency are {why}.")).to_be_visible()
        expect(page.get_by_text("Nothing was delivered")).to_have_count(0)
        page.goto(f"{own.url}/application?box=computation:Visits")
        expect(page.get_by_text(f"How busy it is is {why}.")).to_be_visible()
        page.goto(f"{own.url}/partitions")
        expect(page.get_by_text(f"hot keys are {why}")).to_be_visible()
        page.goto("about:blank")
    with served(recorded_site(looks=[*map(timed, map(explained, recorded("visits")))])) as own:
        for path in ("/", "/application?box=computation:Visits", "/partitions"):
            page.goto(f"{own.url}{path}")
            expect(page.locator("main .card").first).to_be_visible()
            expect(page.get_by_text(why)).to_have_count(0)
        page.goto("about:blank")
