"""The graph's numbers, latencies by percentile and states of partitions on the page: each equals the API's."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import httpx2
import pytest
from playwright.sync_api import Locator, Page, expect

from bettong.inspection.status_form import status_form
from tests.console.recordings import held, recorded, saved, timed
from tests.console.sites import Served, recorded_site, served
from tests.console.test_browser import axe_finds_nothing, fits_everywhere

_UNITS = {"": 1.0, "B": 1, "kB": 1e3, "MB": 1e6, "ms": 1.0, "s": 1000.0, "/s": 1.0, "%": 0.01, "records": 1.0}


@pytest.fixture(scope="module")
def site() -> Iterator[Served]:
    looks = [saved(held(timed(each))) for each in recorded("visits")]
    with served(recorded_site(looks=looks)) as found:
        yield found


def view(site: Served, name: str) -> Any:
    return httpx2.get(f"{site.url}/api/now?view={name}").json()


def equals(said: str, expected: float | None) -> bool:
    """Whether a number with its unit says that, to what is shown of it; durations in ms, shares of 1."""
    if expected is None:
        return said.strip() == "\u2013"
    words = re.fullmatch(r"\s*([\d,.]+)\s*(\S*)\s*", said)
    assert words is not None, said
    number, unit = words.groups()
    shown = float(number.replace(",", "")) * _UNITS[unit]
    return shown == pytest.approx(expected, rel=0.006, abs=0.006 * _UNITS[unit])


def edge(page: Page, start: str, end: str) -> Locator:
    return page.locator(".edge-label").filter(has_text=f"From {start} to {end}:")


def test_arrows_say_how_much_flows_what_waits_and_where_it_is_held(page: Page, site: Served) -> None:
    page.goto(f"{site.url}/application")
    now = view(site, "application")
    flows = {(each["stage"], each["kind"], each["name"]): each for each in now["flows"]}
    expect(page.locator(".edge-label")).to_have_count(4)
    for stage, end in (("clicks", "Visits"), ("clicks-by-page", "Hour")):
        (own,) = (each for each in now["stages"] if each["stage"] == stage)
        entering = next(each for each in flows.values() if (each["stage"], each["kind"]) == (stage, "input"))
        texts = edge(page, "clicks", end).locator("xpath=./span").all_inner_texts()
        assert entering["taken_per_s"] > 0
        assert equals(texts[1], entering["taken_per_s"])
        assert equals(texts[2].replace("lag", ""), own["lag"])
    assert now["senders_held_share"] == pytest.approx(0.25)
    expect(edge(page, "clicks", "Visits").locator(".held")).to_have_text("held 25.0%")
    expect(edge(page, "clicks", "Visits")).to_have_attribute("title", re.compile("a sender had no room"))
    (stage,) = (each for each in now["stages"] if each["stage"] == "clicks")
    leaving = edge(page, "Visits", "visits")
    assert 0.1 < stage["held_share"] < 1
    assert equals(leaving.locator(".held").inner_text().replace("held", ""), stage["held_share"])
    assert equals(
        leaving.locator("xpath=./span").nth(1).inner_text(),
        flows["clicks", "computation", "Visits"]["given_per_s"],
    )
    expect(leaving).to_have_attribute("title", re.compile("; the sink causes no back-pressure$"))
    slow = edge(page, "Hour", "hours")
    expect(slow.locator(".held")).to_have_text("sink holds 95.0%")
    expect(slow).to_have_attribute(
        "title", "back-pressure: unknown; a receiver waited 95.0 % of the time for the sink"
    )
    expect(slow).to_contain_text("lag 77")
    expect(page.locator(".callout")).to_contain_text("its receiver waits for it 95% of the time")


def test_a_box_that_is_chosen_says_what_waits_for_it(page: Page, site: Served) -> None:
    for box, numbers in (
        ("source:clicks", {"To be decoded": "12frames", "Held by senders": "25.0%"}),
        (
            "sink:hours",
            {
                "Not stored yet": "3frames",
                "Held by the sink": "95.0%",
                "Subscribers that do not read": "2",
            },
        ),
    ):
        page.goto(f"{site.url}/application?box={box}")
        for name, said in numbers.items():
            own = page.locator("dl.numbers div").filter(has=page.get_by_text(name, exact=True))
            expect(own.locator("dd")).to_have_text(said)


def test_boxes_say_what_takes_long_and_what_was_late_or_could_not_be_processed(
    page: Page, site: Served
) -> None:
    page.goto(f"{site.url}/application")
    # Before the first look there are boxes, and no numbers.
    expect(page.locator(".edge-label")).to_have_count(4)
    now = view(site, "application")
    (window,) = (each for each in now["computations"] if each["name"] == "Visits")
    (sink,) = (each for each in now["sinks"] if each["sink"] == "visits")
    for box, numbers in (
        ("Visits", [window[name] / 1000 for name in ("p50_us", "p99_us", "p999_us")]),
        ("visits", [sink[name] for name in ("p50_ms", "p99_ms", "p999_ms")]),
    ):
        own = page.get_by_title(box, exact=True).locator(".times > span")
        for said, name, expected in zip(own.all_inner_texts(), ("p50", "p99", "p99.9"), numbers, strict=True):
            label, number = said.split("\n", 1) if "\n" in said else said.split(" ", 1)
            assert (label, equals(number, expected)) == (name, True)
    marked = [each for each in now["flows"] if each["kind"] == "computation" and each["late"]]
    assert len(marked) > 0, "the recording has late messages"
    for each in marked:
        mark = page.get_by_title(each["name"], exact=True).locator(".marks .badge", has_text="late").first
        expect(mark).to_have_attribute("title", f"{each['late']:,} late")
    fits_everywhere(page)
    axe_finds_nothing(page)


def test_a_latency_by_percentile_is_a_curve_and_numbers_of_a_sink_that_stands_in_the_address(
    page: Page, site: Served
) -> None:
    page.goto(f"{site.url}/application?sink=no%20such%20<b>sink</b>")
    now = view(site, "application")
    curves = {each["sink"]: each for each in now["latency_curves"]}
    card = page.locator(".percentiles")
    expect(card.locator("[aria-current]")).to_have_text("visits")
    rows = card.locator("tbody tr")
    expect(rows).to_have_count(6)
    own = curves["visits"]
    curve_lines = [
        ("end to end", own["within_ms"]),
        *((each["part"], each["within_ms"]) for each in own["parts"]),
    ]
    for row, (name, within_ms) in zip(rows.all(), curve_lines, strict=True):
        said, *numbers = row.locator("td").all_inner_texts()
        assert said == name
        for number, share in zip(numbers, (0.5, 0.9, 0.99, 0.999, 0.9999, 1.0), strict=True):
            assert equals(number, within_ms[now["latency_shares"].index(share)])
    expect(card.get_by_role("img")).to_have_attribute(
        "aria-label", re.compile("^Latency of visits by percentile")
    )
    expect(card.locator("path.line")).to_have_count(6)
    card.get_by_role("link", name="hours").click()
    expect(page).to_have_url(f"{site.url}/application?sink=hours")
    expect(rows).to_have_count(1)
    page.locator(".box.sink[title=visits]").click()
    expect(card.locator("[aria-current]")).to_have_text("visits")


def test_without_percentiles_the_page_says_that_nothing_was_delivered(page: Page) -> None:
    with served(recorded_site()) as own:
        page.goto(f"{own.url}/application")
        expect(page.locator(".percentiles")).to_contain_text("Nothing was delivered in the last minute.")
        expect(page.locator(".edge-label .held")).to_have_count(0)
        page.goto("about:blank")


def test_partitions_say_how_large_states_are_how_old_their_snapshots_and_what_these_cost(
    page: Page, site: Served
) -> None:
    page.set_viewport_size({"width": 2560, "height": 1200})
    page.goto(f"{site.url}/partitions")
    now = view(site, "partitions")
    assert site.site.board.known is not None
    statuses = status_form(site.site.board.known.moment.found, 0.0).partitions
    rows = page.locator(".pinned tbody tr")
    expect(rows).to_have_count(len(now["rows"]))
    heads = [each.split("\n")[0] for each in page.locator(".pinned thead th").all_inner_texts()]
    state, age, paused, offset = (heads.index(name) for name in ("State", "Snapshot", "Paused", "Offset"))
    state = heads.index("State", state + 1)  # the first one is whether it moves
    faults = 0
    for row, each, status in zip(rows.all(), now["rows"], statuses, strict=True):
        cells = row.locator("td")
        snapshot = each["snapshot"]
        assert status.snapshot is not None
        assert (each["state_bytes"], snapshot["saved_s"]) == (
            status.state_bytes,
            status.snapshot.saved_unix_s,
        )
        assert equals(cells.nth(state).inner_text(), each["state_bytes"])
        assert cells.nth(offset).inner_text() == f"{status.offset:,}"
        assert equals(cells.nth(paused).inner_text(), snapshot["paused_ms"])
        assert (each["snapshot_fault"], snapshot["size"]) == (
            status.snapshot_fault,
            status.snapshot.bytes_written,
        )
        if each["snapshot_fault"]:
            faults += 1
            expect(cells.nth(age).locator(".badge.notice")).to_have_text("not saved")
            expect(cells.nth(age).locator(".badge")).to_have_attribute(
                "title", "the <b>bucket</b> does not answer"
            )
        else:
            # Where the page gets no newer look, it counts on by its own clock; the hover has the moment.
            title = cells.nth(age).locator("span").first.get_attribute("title") or ""
            assert f"{snapshot['size']:,} bytes in 9.5 ms" in title
    assert faults == 1
    page.get_by_label("only problems").check()
    expect(rows.filter(has_text="not saved")).to_have_count(1)
    page.get_by_label("only problems").uncheck()
    page.get_by_role("button", name="Snapshot").click()
    expect(page).to_have_url(f"{site.url}/partitions?sort=age")
    fits_everywhere(page)
    axe_finds_nothing(page)


def test_an_alert_stands_among_the_changes_with_its_remedy(page: Page, site: Served) -> None:
    page.goto(f"{site.url}/events")
    alerts = [each for each in view(site, "events")["changes"] if each["what"] == "alert"]
    assert any(
        "the <b>bucket</b> does not answer; bring the snapshot store" in each["text"] for each in alerts
    )
    shown = page.locator(".timeline > li").filter(has=page.locator(".badge.notice"))
    expect(shown).to_have_count(len(alerts))
    for row, alert in zip(shown.all(), alerts, strict=True):
        expect(row.locator(".wrap")).to_have_text(f"alert {alert['text']}")
    assert page.locator(".timeline b").count() == 0
    axe_finds_nothing(page)
