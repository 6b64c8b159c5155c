"""The console of a running suite, in Debian's Chromium: what the page says is so, soon, and again after each fault.

Everything is real. Tests are in the order in which they run; the last ones break what the others need.
"""

from __future__ import annotations

import json
import os
import re
import signal
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack

import httpx2
import psutil
import pytest
from playwright.sync_api import Browser, Locator, Page, expect

from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.edges.redis_store import RedisStore
from bettong.edges.redis_store.membership import Holders
from bettong.local.options import Restarts, SuiteOptions
from bettong.local.suite import Suite
from bettong.services import CONSOLE, PROCESSOR
from tests.console.browsers import chromium, watched_page
from tests.e2e.noted import APPLICATION, MENDED_S, World, answers
from tests.looked_at import words_of
from tests.waiting import bound_s, eventually

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

# What a person sees is true within this.
TRUE_S = 2.0
# Of 50 pages open: 5 % of a core in two minutes of a machine that does nothing else.
PAGES, PAGES_S, PAGES_LONG_S = 50, 10.0, 120.0
CPU_SHARE_MAX = 0.05
CLIENTS = 5


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    folder, own = tmp_path_factory.mktemp("suite"), tmp_path_factory.mktemp("seen")
    program, broken = own / "app.py", own / "broken"
    program.write_text(APPLICATION.format(broken=str(broken)))
    broken.touch()
    options = SuiteOptions(
        application=str(program),
        partitions=2,
        console=True,
        keep=folder,
        settings={"snapshot_interval_ms": "200", "spark_master": "local[2]"},
        restarts=Restarts(deaths_max=20),
    )
    with ExitStack() as stack:
        found = World(stack.enter_context(Suite(options)), folder, program, broken)
        eventually(lambda: answers(found.url), seconds=MENDED_S, what="the console")
        yield found


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def faults() -> list[str]:
    """What the page complained about; a test takes out what it caused."""
    return []


@pytest.fixture
def page(browser: Browser, faults: list[str]) -> Iterator[Page]:
    with watched_page(browser, faults, timezone="UTC") as found:
        yield found


@pytest.fixture
def say(world: World, capsys: pytest.CaptureFixture[str]) -> Callable[..., str]:
    """Runs a command on the suite; what it prints, when it ends well."""

    def said(*line: str) -> str:
        capsys.readouterr()
        code = end_well(command_line, [*line, "--dir", str(world.folder)], name="bettong")
        captured = capsys.readouterr()
        assert code == 0, captured.err
        return captured.out

    return said


def amount_of(text: str) -> int:
    """A number of the page, without its unit."""
    found = re.match(r"[\d,]+", text.strip())
    assert found is not None, text
    return int(found[0].replace(",", ""))


def live(page: Page) -> None:
    expect(page.locator(".fresh")).to_have_text("live", timeout=MENDED_S * 1000)


def test_numbers_on_the_page_are_those_of_the_api_and_of_what_was_sent(world: World, page: Page) -> None:
    world.feed(*[(f"k{index % CLIENTS}", index + 20) for index in range(100)])
    world.await_all()
    page.goto(world.url)
    live(page)
    tiles = page.locator(".tile .below")
    expect(tiles.nth(0)).to_have_text(f"{world.sent} since its senders started", timeout=30_000)
    expect(tiles.nth(1)).to_have_text(f"{len(world.results)} delivered", timeout=30_000)
    summary = world.asked("summary")
    assert (summary["totals"]["messages"], summary["totals"]["results"]) == (100, 100)
    expect(page.locator(".tile .value").nth(3)).to_have_text("0records", timeout=30_000)
    page.goto(f"{world.url}/accounts")
    expect(page.locator(".verdict .word")).to_have_text("Adds up")
    lines = {each["name"]: each for each in world.asked("accounts")["lines"]}
    for row in page.locator("tbody tr:has(td)").all():
        name = row.locator("td.name").get_attribute("title")
        assert name in lines
        for what in ("taken", "given"):
            assert amount_of(row.locator(f"td[data-field={what}]").inner_text()) == lines[name][what] == 100
    page.goto(f"{world.url}/partitions")
    rows = world.asked("partitions")["rows"]
    assert sum(row["messages"] for row in rows) == 100
    assert sum(row["keys"] for row in rows) == CLIENTS
    keys = page.locator("table.pinned tbody tr")
    expect(keys).to_have_count(2)
    heads = page.locator("table.pinned thead th button").all_inner_texts()
    shown = [amount_of(row.locator("td").nth(heads.index("Keys")).inner_text()) for row in keys.all()]
    assert shown == [row["keys"] for row in rows]


def test_a_key_s_history_is_what_replay_says_and_ends_with_the_sum_that_was_sent(
    world: World, page: Page, say: Callable[..., str]
) -> None:
    printed = say("replay", str(world.program), "--key", "k1", "--last", "1000", "--json")
    replayed = [json.loads(line) for line in printed.splitlines()]
    assert len(replayed) == 20
    answer = httpx2.get(f"{world.url}/api/key?key=k1&stage=notes&from=beginning", timeout=90).json()
    assert [{name: each[name] for name in each if name != "time_s"} for each in answer["events"]] == replayed
    page.goto(f"{world.url}/key?key=k1&stage=notes&from=beginning")
    entries = page.locator(".timeline > li:not(.snapshot)")
    expect(entries).to_have_count(len(replayed), timeout=90_000)
    for entry, event in zip(entries.all(), reversed(replayed), strict=True):
        said, state, *_ = entry.locator(".json").all()
        assert json.loads(said.inner_text()) == event["message"]
        after = event["states"][0]["after"]
        assert state.inner_text().endswith(str(after["sum"]))
    assert replayed[-1]["states"][0]["after"] == {"sum": world.sums["k1"]}


def test_a_retried_dead_letter_is_told_as_sent_again_and_arrives_once(
    world: World, page: Page, say: Callable[..., str]
) -> None:
    world.feed(("k2", 13))
    page.goto(f"{world.url}/events?dead-letters=1")
    rows = page.locator("table tbody tr")

    def read_again() -> bool:
        page.locator("[data-ask]").click()
        expect(page.locator("[data-ask]")).to_have_text("Read again", timeout=90_000)
        return rows.count() == 1

    eventually(read_again, seconds=MENDED_S, what="the dead letter on the page")
    expect(rows.first).to_contain_text("thirteen <b>is</b> unlucky")
    assert page.locator("table b").count() == 0, "a reason is no markup"
    assert rows.first.locator(".badge").count() == 0
    world.broken.unlink()
    for _ in range(2):
        say("dead-letters", "retry", str(world.program), "--all")
    world.take("k2", 13)
    world.await_all()
    page.locator("[data-ask]").click()
    expect(rows.first.locator(".badge.good")).to_have_text("sent again", timeout=90_000)
    world.feed(("k2", 1))  # what came twice would be seen here
    world.await_all()


def workers_of(pid: int) -> list[psutil.Process]:
    """The processes that fold, of a processor: children of the one that was prepared for it."""

    def is_prepared(each: psutil.Process | None) -> bool:
        return each is not None and "--prepared" in words_of(each)

    below = psutil.Process(pid).children(recursive=True)
    return [each for each in below if is_prepared(each) and is_prepared(each.parent())]


def seconds_until(locator: Locator, began_s: float) -> float:
    """When it was there, by a clock that began then."""
    expect(locator).to_be_visible(timeout=MENDED_S * 1000)
    return time.monotonic() - began_s


@pytest.mark.timely
def test_a_killed_worker_shows_within_two_seconds_and_so_does_its_return(world: World, page: Page) -> None:
    page.goto(world.url)
    live(page)
    before = eventually(lambda: complete(world), seconds=MENDED_S, what="all partitions are held")
    changes = page.locator(".needs li")
    gone = changes.filter(has_text=re.compile(r"were replaced|from slot \d to (slot|no slot)"))
    assert gone.count() == 0
    returned: list[tuple[int, float]] = []

    def watch() -> None:
        slot = eventually(lambda: renewed(before, world.holders()), seconds=MENDED_S, what="another worker")
        returned.append((slot[0], time.monotonic()))

    watching = threading.Thread(target=watch)
    killed = workers_of(world.pid(PROCESSOR.name))[0]
    began_s = time.monotonic()
    watching.start()
    killed.kill()
    assert seconds_until(gone.first, began_s) < bound_s(TRUE_S)
    watching.join()
    ((slot, returned_s),) = returned
    back = changes.filter(has_text=re.compile(rf"were replaced: slot {slot}|to slot {slot}"))
    assert seconds_until(back.first, returned_s) < bound_s(TRUE_S)
    world.feed(("k3", 5))
    world.await_all()


def complete(world: World) -> Holders | None:
    found = world.holders()
    return found if len(found.slots) == 2 else None


def renewed(before: Holders, now: Holders) -> list[int]:
    """The slot in which a later task holds something."""
    return [slot for slot, task in now.incarnations.items() if before.incarnations.get(slot, task) != task][
        :1
    ]


def test_a_console_that_stands_still_leaves_a_page_that_is_grey_and_comes_back(
    world: World, page: Page
) -> None:
    page.goto(world.url)
    live(page)
    main = page.locator("main")
    os.kill(world.pid(CONSOLE), signal.SIGSTOP)
    try:
        expect(main).to_have_attribute("data-stale", "", timeout=30_000)
        expect(page.locator(".fresh")).to_have_text(re.compile(r"^as of [\d.]+ (s|min) ago"))
    finally:
        os.kill(world.pid(CONSOLE), signal.SIGCONT)
    live(page)
    expect(main).not_to_have_attribute("data-stale", "")


def test_50_pages_open_cost_little_and_all_are_told(world: World, page: Page) -> None:
    open_pages(world, page, PAGES_S, share_max=None)


@pytest.mark.long
def test_50_pages_open_for_two_minutes_cost_less_than_a_twentieth_of_a_core(world: World, page: Page) -> None:
    open_pages(world, page, PAGES_LONG_S, share_max=CPU_SHARE_MAX)


def open_pages(world: World, page: Page, seconds: float, *, share_max: float | None) -> None:
    """One in a browser, the others as a browser's stream is: each gets a view a second."""
    views = ("summary", "application", "partitions", "accounts", "events")
    seen = [0] * (PAGES - 1)
    stopped = threading.Event()

    def listen(number: int) -> None:
        address = f"{world.url}/api/live?view={views[number % len(views)]}"
        with httpx2.stream("GET", address, timeout=60) as answer:
            for line in answer.iter_lines():
                seen[number] += line.startswith("data:")
                if stopped.is_set():
                    return

    page.goto(world.url)
    listeners = [threading.Thread(target=listen, args=(number,)) for number in range(len(seen))]
    for each in listeners:
        each.start()
    try:
        eventually(lambda: min(seen) > 0, seconds=60, what="each page was told something")
        console, before = psutil.Process(world.pid(CONSOLE)), list(seen)
        began_s, busy_s = time.monotonic(), cpu_s(console)
        eventually(lambda: time.monotonic() - began_s >= seconds, seconds=seconds + 60)
        passed_s = time.monotonic() - began_s
        share = (cpu_s(console) - busy_s) / passed_s
        assert min(now - was for now, was in zip(seen, before, strict=True)) >= passed_s / 2 - 1
        live(page)
        assert share_max is None or share < share_max, f"{share:.1%} of a core"
    finally:
        stopped.set()
        for each in listeners:
            each.join()


def cpu_s(process: psutil.Process) -> float:
    times = process.cpu_times()
    return float(times.user + times.system)


def test_after_redis_was_emptied_the_page_goes_on_and_is_right_again(world: World, page: Page) -> None:
    page.goto(world.url)
    live(page)
    with RedisStore(world.suite.record.redis_connection, "noted") as store:
        store.ask("emptying Redis", lambda client: client.flushall())
    world.feed(("k4", 7))
    world.await_all()
    live(page)
    expect(page.locator(".verdict h1")).to_have_text(re.compile("Running|Idle"), timeout=MENDED_S * 1000)
    expect(page.locator(".services .badge.bad")).to_have_count(0, timeout=MENDED_S * 1000)
    eventually(
        lambda: world.asked("summary")["totals"]["messages"] == world.sent + 1,  # the dead letter, again
        seconds=MENDED_S,
        what="the sum of all that senders took in",
    )
    page.goto(f"{world.url}/partitions")
    rows = page.locator("table.pinned tbody tr")
    expect(rows).to_have_count(2, timeout=MENDED_S * 1000)
    assert sum(row["keys"] for row in world.asked("partitions")["rows"]) == CLIENTS
