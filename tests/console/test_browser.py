"""The page in Debian's Chromium, over a recording: it shows, it says how old it is, and no name can become markup."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

import httpx2
import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Browser, Page, expect

from bettong.identifiers import PartitionId
from bettong.inspection.flow_graph import Arrow, Box, BoxKind, FlowGraph
from bettong.inspection.overview import service_of
from tests.console.pictures import PICTURES, fresh_recording, take_pictures
from tests.console.recordings import Look, explained, miscounted, recorded, timed
from tests.console.sites import CASE, Served, recorded_site, served
from tests.waiting import eventually

PAGES = (
    "/",
    "/application",
    "/partitions",
    "/accounts",
    "/key?key=ann&stage=clicks",
    "/events?dead-letters=1",
    "/sign-in",
)
COLOURS: tuple[Literal["light", "dark"], ...] = ("light", "dark")
WIDTHS = (360, 800, 1280, 2560, 3840)
DOCS = Path(__file__).parents[2] / "docs"
PICTURE_BYTES_MAX = 200_000
MARKUP = "<img src=x onerror=alert(1)><script>alert(2)</script>" + "long" * 40


@pytest.fixture(scope="module")
def site() -> Iterator[Served]:
    with served(recorded_site()) as found:
        yield found


def later(seconds: float) -> Look:
    last = recorded("visits")[-1]
    return replace(last, time_s=last.time_s + seconds)


def fits(page: Page) -> None:
    """Returns once nothing is wider than the window; charts follow it with the next frame. Fails after the timeout."""
    # Not `wait_for_function`: what it asks again on a later frame is text to evaluate, which the page's policy blocks.
    width = "document.documentElement.scrollWidth <= document.documentElement.clientWidth"
    eventually(lambda: page.evaluate(width), seconds=10)


def fits_everywhere(page: Page) -> None:
    """From a phone to 4K."""
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 800})
        fits(page)


def axe_finds_nothing(page: Page) -> None:
    """Light and dark."""
    for colours in COLOURS:
        page.emulate_media(color_scheme=colours)
        report = Axe().run(page)
        assert report.violations_count == 0, f"{colours}: {report.generate_report()}"


@pytest.mark.parametrize("place", PAGES)
def test_every_place_shows_without_a_fault_fits_from_a_phone_to_4k_and_axe_finds_nothing(
    page: Page, site: Served, place: str
) -> None:
    page.goto(site.url + place)
    expect(page.locator("main .card").first).to_be_visible()
    if place != "/sign-in":
        expect(page.locator(".fresh")).to_contain_text("as of")  # the recording is old
    fits_everywhere(page)
    page.set_viewport_size({"width": 1280, "height": 800})
    axe_finds_nothing(page)


def test_the_overview_says_in_a_word_how_it_is_and_each_number_has_a_unit(page: Page, site: Served) -> None:
    page.goto(site.url)
    expect(page.locator(".verdict h1")).to_have_text("Running")
    tiles = page.locator(".tile .value")
    expect(tiles).to_have_count(5)
    assert all(
        any(text.endswith(unit) for unit in ("/s", "ms", "records", "dead letters", "\u2013"))
        for text in tiles.all_inner_texts()
    )
    expect(page.locator(".services tbody tr")).to_have_count(3)


def test_accounts_are_those_of_the_api_and_green_with_a_word_where_they_add_up(
    page: Page, site: Served
) -> None:
    page.goto(f"{site.url}/accounts")
    expect(page.locator(".verdict .word")).to_have_text("Adds up")
    lines = httpx2.get(f"{site.url}/api/now?view=accounts").json()["lines"]
    rows = page.locator("tbody tr:has(td)")
    expect(rows).to_have_count(len(lines))
    for row, line in zip(rows.all(), lines, strict=True):
        expect(row.locator("td.name")).to_have_attribute("title", line["name"])
        for field in ("taken", "used", "filtered", "late", "dead_letters", "skipped", "given"):
            said = row.locator(f"td[data-field={field}]").inner_text()
            assert said == ("" if line[field] is None else f"{line[field]:,}")
        expect(row.locator(".badge.good")).to_have_text("adds up")


def test_accounts_that_do_not_add_up_are_red_with_words_and_a_stage_has_an_address(page: Page) -> None:
    looks = recorded("visits")
    with served(recorded_site(looks=[*looks[:-2], *map(miscounted, looks[-2:])])) as own:
        page.goto(own.url)
        page.locator(".needs li").filter(has_text="accounts do not add up").get_by_role("link").first.click()
        expect(page).to_have_url(f"{own.url}/accounts")
        page.goto(f"{own.url}/accounts?stage=clicks-by-page")
        expect(page.locator(".verdict .word")).to_have_text("Does not add up")
        expect(page.locator(".verdict li")).to_contain_text("clicks-by-page, ")
        expect(page.locator("tbody tr.bad .badge.bad")).to_have_text("does not add up")
        expect(page.locator("tbody .group")).to_have_text("clicks-by-page")
        page.get_by_label("Stage").select_option("clicks")
        expect(page).to_have_url(f"{own.url}/accounts?stage=clicks")
        expect(page.locator("tbody tr.bad")).to_have_count(0)
        page.goto("about:blank")


def test_what_is_new_appears_by_itself_and_is_not_old(page: Page, site: Served) -> None:
    with served(recorded_site()) as own:
        page.goto(own.url)
        expect(page.locator("main")).to_have_attribute("data-stale", "")
        own.look(replace(later(0), time_s=page.evaluate("Date.now() / 1000") + 15))  # a machine may be slow
        expect(page.locator(".fresh")).to_have_text("live")
        expect(page.locator("main")).not_to_have_attribute("data-stale", "")
        page.goto("about:blank")


def test_a_page_that_nobody_sees_holds_no_connection_and_one_that_is_seen_again_is_new(page: Page) -> None:
    def turn(state: str) -> None:
        page.evaluate(
            "state => { Object.defineProperty(document, 'visibilityState', { value: state, configurable: true });"
            " document.dispatchEvent(new Event('visibilitychange')); }",
            state,
        )

    with served(recorded_site()) as own:
        page.goto(own.url)
        expect(page.locator(".verdict")).to_be_visible()
        assert own.streams() == 1
        turn("hidden")
        eventually(lambda: own.streams() == 0, what="the end of the page's stream")
        own.look(replace(later(0), time_s=page.evaluate("Date.now() / 1000")))
        turn("visible")
        expect(page.locator(".fresh")).to_have_text("live")
        assert own.streams() == 1
        page.goto("about:blank")


def test_a_console_that_takes_a_question_and_says_nothing_is_a_fault_that_is_shown(page: Page) -> None:
    with served(recorded_site()) as own:
        page.goto(f"{own.url}/application")
        expect(page.locator(".box")).to_have_count(5)
        page.route("**/api/history*", lambda _: None)
        page.evaluate(
            "const timeout = AbortSignal.timeout; AbortSignal.timeout = (ms) => timeout.call(AbortSignal, ms / 100);"
        )
        with page.expect_request("**/api/history*"):
            page.get_by_role("link", name="1 hour").click()
        expect(page.get_by_text("the console does not answer within 15 s")).to_be_visible()
        page.goto("about:blank")


def test_the_graph_has_every_box_and_an_address_for_each(page: Page, site: Served) -> None:
    page.goto(f"{site.url}/application")
    expect(page.locator(".box")).to_have_count(5)
    expect(page.locator(".stage-box")).to_have_count(2)
    with page.expect_request(lambda asked: "stage%2Fclicks%2Fp99_ms" in asked.url):
        page.get_by_title("Visits", exact=True).click()
    expect(page).to_have_url(f"{site.url}/application?box=computation%3AVisits")
    expect(page.get_by_text("sessions of Visits")).to_be_visible()
    page.go_back()
    expect(page.get_by_text("sessions of Visits")).to_have_count(0)
    page.get_by_role("link", name="1 hour").click()
    expect(page).to_have_url(f"{site.url}/application?span=1h")
    expect(page.locator(".chart canvas")).to_have_count(3)


def test_the_parts_of_the_latency_are_a_bar_and_words_that_add_up(page: Page) -> None:
    looks = recorded("visits")
    with served(recorded_site(looks=[*looks[:-1], explained(looks[-1])])) as own:
        page.goto(own.url)
        (sink,) = httpx2.get(f"{own.url}/api/now?view=summary").json()["latency_parts"]
        found = page.locator(".latency")
        expect(found.locator("p")).to_have_text("visits 12.5ms, most of it log to worker")
        for number, (said, each) in enumerate(
            zip(found.locator("li").all_inner_texts(), sink["parts"], strict=True), 1
        ):
            words = re.fullmatch(rf"{number}(\D+) ([\d.]+)ms, ([\d.]+)%", said.strip())
            assert words is not None, said
            part, mean_ms, percent = words.groups()
            assert part == each["part"]
            assert float(mean_ms) == pytest.approx(each["mean_ms"], abs=0.006)
            assert float(percent) == pytest.approx(100 * each["share"], abs=0.06)
        expect(found.locator("li.largest")).to_contain_text("log to worker")
        widths = found.locator(".parts i").evaluate_all("all => all.map((each) => each.offsetWidth)")
        whole = sum(widths)
        for width, each in zip(widths, sink["parts"], strict=True):
            assert width / whole == pytest.approx(each["share"], abs=0.02)
        fits_everywhere(page)
        axe_finds_nothing(page)
        page.goto("about:blank")


def test_open_windows_are_shown_with_who_holds_them_and_follow_the_stage(page: Page) -> None:
    looks = recorded("visits")
    with served(recorded_site(looks=[*looks[:-1], explained(looks[-1])])) as own:
        page.goto(f"{own.url}/partitions")
        windows = httpx2.get(f"{own.url}/api/now?view=partitions").json()["windows"]
        rows = page.locator("table.windows tbody tr")
        expect(rows).to_have_count(len(windows))
        held_by = windows[0]["held_by"]
        expect(rows.first).to_contain_text(f"partition {held_by['stream']} of stage clicks")
        expect(rows.first).to_contain_text("are not folded yet")
        expect(rows.first.locator("time").first).to_have_attribute("title", re.compile("UTC$"))
        fits_everywhere(page)
        axe_finds_nothing(page)
        page.goto(f"{own.url}/partitions?stage=clicks")
        expect(page.locator("tbody tr").first).to_be_visible()
        expect(page.locator("table.windows")).to_have_count(0)
        page.goto("about:blank")


def test_a_key_s_history_becomes_a_test_to_copy(page: Page, site: Served) -> None:
    page.context.grant_permissions(["clipboard-read", "clipboard-write"])
    page.goto(f"{site.url}/key?key=ann&stage=clicks")
    page.get_by_role("button", name="Make a test").click()
    expect(page.locator(".case")).to_have_text(CASE, use_inner_text=True)
    assert page.locator(".case").evaluate("element => element.textContent") == CASE
    assert page.locator(".case b").count() == 0
    page.get_by_role("button", name="Copy").click()
    assert page.evaluate("navigator.clipboard.readText()") == CASE
    fits_everywhere(page)
    axe_finds_nothing(page)


def test_the_hottest_key_of_a_partition_is_named_and_leads_to_its_history(page: Page) -> None:
    with served(recorded_site(looks=[*map(timed, recorded("visits"))])) as own:
        page.goto(f"{own.url}/partitions?sort=hot")
        cell = page.locator(".pinned tbody tr td.holder").filter(has_text="42 %").first
        expect(cell).to_have_text("42 % ann & <bob>")
        cell.get_by_role("link").click()
        expect(page).to_have_url(f"{own.url}/key?stage=clicks&key=ann+%26+%3Cbob%3E")
        page.goto("about:blank")


def test_a_partition_with_many_times_its_share_is_named_with_its_hottest_keys_and_the_remedy(
    page: Page,
) -> None:
    def crowded(number: int, look: Look) -> Look:
        busy = PartitionId("clicks", 3)
        record = look.answers.partitions[busy]
        more = {**record, "messages": str(int(record["messages"]) + 100_000 * number)}
        return replace(
            look, answers=replace(look.answers, partitions={**look.answers.partitions, busy: more})
        )

    looks = [crowded(number, timed(look)) for number, look in enumerate(recorded("visits"))]
    with served(recorded_site(looks=looks)) as own:
        page.goto(f"{own.url}/partitions")
        callout = page.locator(".callout.notice").filter(has_text="clicks/3 takes")
        expect(callout).to_contain_text("Its hottest keys: ann & <bob> 42 %, eve 10 %.")
        expect(callout).to_contain_text("spread them by a key with more fields")
        page.goto("about:blank")


def test_partitions_sort_and_filter_and_the_address_remembers(page: Page, site: Served) -> None:
    page.goto(f"{site.url}/partitions")
    rows = page.locator(".pinned tbody tr")
    total = len(recorded("visits")[-1].answers.partitions)
    expect(rows).to_have_count(total)
    page.get_by_role("button", name="Keys").click()
    page.get_by_label("Stage").select_option("clicks")
    expect(rows).to_have_count(total // 2)
    page.get_by_label("Filter partitions").fill("slot:0")
    expect(page).to_have_url(f"{site.url}/partitions?sort=keys&stage=clicks&filter=slot%3A0")
    count = rows.count()
    assert 0 < count < total // 2
    page.reload()
    expect(rows).to_have_count(count)
    expect(page.locator("th[aria-sort=descending]")).to_contain_text("Keys")
    page.get_by_label("Filter partitions").fill("no such thing")
    expect(page.get_by_text("No partition matches")).to_be_visible()


def test_a_key_is_asked_for_by_keyboard_and_its_states_are_shown(page: Page, site: Served) -> None:
    page.goto(f"{site.url}/")
    page.keyboard.press("g")
    page.keyboard.press("k")
    expect(page).to_have_url(f"{site.url}/key")
    page.get_by_label("Key", exact=True).wait_for()  # the address is there before the place is drawn
    page.keyboard.press("/")
    page.keyboard.type("ann")
    page.keyboard.press("Enter")
    entries = [re.compile(each) for each in ("offset 4", "snapshot has all that lies before", "offset 3")]
    expect(page.locator(".timeline > li")).to_have_text(entries)
    expect(page.locator(".timeline .changed").first).to_contain_text("/prices")
    expect(page.locator(".timeline > li").first).to_contain_text('"at":1700000001000000001')  # not rounded
    assert page.locator(".timeline time").first.get_attribute("title") == "2026-11-26 08:00:01 UTC"
    expect(page.locator(".timeline time").first).to_contain_text("09:00:01")


def test_what_a_question_is_refused_for_is_shown(page: Page, site: Served, faults: list[str]) -> None:
    page.goto(f"{site.url}/key?key=ann&stage=nowhere")
    expect(page.get_by_role("alert")).to_contain_text("there is no stage 'nowhere'")
    faults.clear()  # a browser says of each 404 that there was one


@pytest.mark.parametrize("computation", ["clicks", "one that has none"])
def test_a_computation_that_was_chosen_can_be_left_again(page: Page, site: Served, computation: str) -> None:
    page.goto(f"{site.url}/events?dead-letters=1&computation={computation}")
    field = page.get_by_label("Computation")
    expect(field).to_have_value(computation)
    field.select_option("")
    expect(page).to_have_url(f"{site.url}/events?dead-letters=1")
    expect(field).to_have_count(0)


def test_colours_follow_the_system_or_a_choice(page: Page, site: Served) -> None:
    page.emulate_media(color_scheme="dark")
    page.goto(site.url)
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    for _ in range(1):  # system -> light
        page.get_by_label("Colours: system; change").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    page.reload()
    expect(page.get_by_label("Colours: light; change")).to_be_visible()


def test_no_name_becomes_markup_or_breaks_the_page(page: Page) -> None:
    look = later(0)
    answers = look.answers
    receiver = next(each for each in answers.live.values() if service_of(each) == "receiver")
    live = {MARKUP: {**receiver, "state": MARKUP, "detail": MARKUP, f"messages/{MARKUP}": "3"}}
    records = {PartitionId(MARKUP, each.partition): record for each, record in answers.partitions.items()}
    named = [
        {**record, "watermark_held_by": f"{MARKUP}/feed", "fault": MARKUP} for record in records.values()
    ]
    partitions = dict(zip(records, named, strict=True))
    slots = {PartitionId(MARKUP, each.partition): slot for each, slot in answers.slots.items()}
    looks = [
        replace(look, answers=replace(answers, live=live, partitions=partitions, logs=None, slots=slots))
    ]
    boxes = tuple(
        Box(
            f"{kind}:{MARKUP}",
            kind,
            MARKUP,
            MARKUP if kind is BoxKind.COMPUTATION else "",
            MARKUP,
            MARKUP,
            MARKUP,
        )
        for kind in BoxKind
    )
    arrows = (Arrow(boxes[0].id, boxes[1].id, MARKUP, MARKUP), Arrow(boxes[1].id, boxes[2].id, "", MARKUP))
    with served(recorded_site(looks=looks, graph=FlowGraph((MARKUP,), boxes, arrows))) as own:
        page.set_viewport_size({"width": 360, "height": 800})
        for place in (*PAGES[:-1], f"/application?box=source:{MARKUP}", f"/key?key={MARKUP}"):
            page.goto(own.url + place)
            expect(page.locator("main .card").first).to_be_visible()
            assert page.locator("main img, main script").count() == 0, place
            fits(page)
        page.goto("about:blank")


def test_a_console_that_ends_leaves_a_page_that_says_so(page: Page, faults: list[str]) -> None:
    with served(recorded_site()) as own:
        page.goto(own.url)
        expect(page.locator(".verdict")).to_be_visible()
    expect(page.locator(".fresh")).to_contain_text("the console does not answer", timeout=15_000)
    expect(page.locator("main")).to_have_attribute("data-stale", "")
    faults.clear()  # a browser says of each connection that failed


def test_pictures_of_the_docs_are_of_places_as_they_are_now_and_small(
    browser: Browser, tmp_path: Path
) -> None:
    with fresh_recording() as (url, renew):
        take_pictures(browser, url, tmp_path, renew)
    page_text = (DOCS / "console.md").read_text()
    for name in PICTURES:
        assert f"(images/{name}.png)" in page_text
        for folder in (tmp_path, DOCS / "images"):
            content = (folder / f"{name}.png").read_bytes()
            assert content.startswith(b"\x89PNG")
            assert len(content) < PICTURE_BYTES_MAX
