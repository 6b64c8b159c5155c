"""`bettong top` over recorded services: each page, keys, and data that is stale, empty, too long, or garbage."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bettong.cli.top.app import PAGES
from bettong.cli.top.lines import Picture
from bettong.identifiers import PartitionId
from bettong.inspection.deployment import DeploymentAnswers, Logs
from bettong.inspection.watched import Watched, watched
from tests.samples.top_screen import Screen, on_screen
from tests.samples.watched_deployment import (
    BEGUN_S,
    answers,
    dead_letters,
    inspected,
    watched_for,
)

SCREENS = Path(__file__).parents[1] / "samples" / "top"
SECONDS = 40
NOW_S = SECONDS - 1.0
REASONS = dead_letters(
    {
        ("check", "ValueError: no price"): 12,
        (
            "orders",
            "UnicodeDecodeError: 'utf-8' codec can't decode byte 0xff in position 3: invalid start",
        ): 3,
        ("spread_window", "killed the worker: signal 11 (SIGSEGV)"): 1,
    }
)
SICK_DETAIL = (
    "sink rejected, table rejected of Postgres at db.example:5432: connection refused; is it running?"
)


def sick(second: int, found: DeploymentAnswers) -> DeploymentAnswers:
    """A sink is away, and a partition stands still."""
    live = {name: dict(record) for name, record in found.live.items()}
    live["receiver"] |= {"state": "waiting", "detail": SICK_DETAIL}
    live["processor"] |= {"stalled_s/spreads/2": "17.0"}
    return replace(found, live=live) if second > 30 else found


WELL = Picture(watched_for(SECONDS), REASONS)
SICK = Picture(watched_for(SECONDS, sick), REASONS)


def after(picture: Picture, found: DeploymentAnswers, second: float) -> Picture:
    assert picture.found is not None
    more = watched(picture.found, inspected(found), at_s=second, unix_s=BEGUN_S + second)
    return replace(picture, found=more)


@pytest.mark.parametrize(("number", "page"), list(enumerate(PAGES, 1)))
def test_each_page_looks_as_it_was_last_agreed_on(number: int, page: str) -> None:
    async def play(screen: Screen) -> None:
        await screen.show(SICK)
        await screen.press(str(number))
        assert screen.text() == (SCREENS / f"{page}.txt").read_text()

    on_screen(play, at_s=NOW_S)


def test_no_line_is_wider_than_the_screen_whatever_its_size() -> None:
    async def play(screen: Screen) -> None:
        await screen.show(SICK)
        for number in range(1, 8):
            await screen.press(str(number))
            width, height = screen.app.size
            assert len(screen.lines()) == height
            assert all(len(line) <= width for line in screen.lines())
            assert "market-spread" in screen.lines()[0]

    for size in ((40, 12), (80, 24), (200, 50)):
        on_screen(play, at_s=NOW_S, size=size)


def test_it_says_first_what_does_not_go_on_and_why() -> None:
    async def play(screen: Screen) -> None:
        await screen.show(WELL)
        assert "all works" in screen.lines()[0]
        await screen.show(SICK)
        assert "HELD UP: receiver waiting, 1 partition st" in screen.lines()[0]
        text = screen.text()
        assert "! spreads/2 stands still at offset 121,002 for 17 s: 1,674 records wait" in text
        assert "receiver   waiting" in text
        await screen.press("down", "down")
        assert SICK_DETAIL in " ".join(line.strip() for line in screen.lines()[-6:])

    on_screen(play, at_s=NOW_S)


def test_before_the_first_answer_it_says_that_it_asks() -> None:
    async def play(screen: Screen) -> None:
        for number in range(1, 8):
            await screen.press(str(number))
            assert "connecting" in screen.lines()[0]
        await screen.show(Picture(fault="nothing runs in .bettong (bettong up APP.py)"))
        assert "NO ANSWER: nothing runs in .bettong" in screen.lines()[0]

    on_screen(play)


def test_numbers_are_grey_with_their_age_once_no_answer_came_for_three_seconds() -> None:
    async def play(screen: Screen) -> None:
        await screen.show(WELL)
        fresh = screen.colours("12,0") | screen.colours("messages/s")
        screen.clock.now_s = NOW_S + 2.9
        screen.app.draw()
        await screen.settle()
        assert "STALE" not in screen.text()
        screen.clock.now_s = NOW_S + 45
        screen.app.draw()
        await screen.settle()
        assert "STALE, 45 s old" in screen.lines()[0]
        grey = screen.colours("messages/s")
        assert grey.isdisjoint(fresh)
        await screen.press("3")
        assert screen.colours("orders/1") == grey
        await screen.show(after(WELL, answers(SECONDS + 45), NOW_S + 45))
        assert "STALE" not in screen.text()
        assert screen.colours("orders/1").isdisjoint(grey)

    on_screen(play, at_s=NOW_S)


def test_redis_and_kafka_that_are_away_are_named_and_come_back() -> None:
    away = replace(
        DeploymentAnswers(), silent={"redis": "Redis at x does not answer", "kafka": "Kafka at y neither"}
    )

    async def play(screen: Screen) -> None:
        await screen.show(WELL)
        screen.clock.now_s = NOW_S + 9
        await screen.show(after(WELL, away, NOW_S + 9))
        first, text = screen.lines()[0], screen.text()
        assert "no answer from redis and kafka" in first
        assert first.endswith("STALE, 9 s old")
        assert "! Redis at x does not answer; its data is left out" in text
        assert "90,521,639 in, 44,218,400 out" in text, "the last numbers stay, grey"
        await screen.press("3")
        assert "orders/0" in screen.text()
        await screen.press("1")
        await screen.show(after(WELL, answers(SECONDS + 9), NOW_S + 9))
        assert "all works" in screen.lines()[0]

    on_screen(play, at_s=NOW_S)


def test_lag_is_unknown_and_no_number_without_kafka() -> None:
    silent = replace(answers(SECONDS), logs=None, silent={"kafka": "Kafka at y does not answer"})

    async def play(screen: Screen) -> None:
        await screen.show(after(WELL, silent, NOW_S))
        assert "lag      unknown" in screen.text()
        await screen.press("2")
        assert [line.split()[2:4] for line in screen.lines()[5:7]] == [["-", "-"], ["-", "-"]]

    on_screen(play, at_s=NOW_S)


def test_s_sorts_by_the_next_column_and_r_turns_it_round() -> None:
    async def play(screen: Screen) -> None:
        await screen.show(SICK)
        await screen.press("3")
        assert "partition▲" in screen.lines()[3]
        await screen.press("s", "s")
        assert "lag▼" in screen.lines()[3]
        assert screen.lines()[5].split()[0] == "spreads/2"
        await screen.press("r")
        assert "lag▲" in screen.lines()[3]
        assert screen.lines()[12].split()[0] == "spreads/2"
        await screen.press("S", "S")
        assert [line.split()[0] for line in screen.lines()[5:13]] == [
            *(f"orders/{number}" for number in range(4)),
            *(f"spreads/{number}" for number in range(4)),
        ]

    on_screen(play, at_s=NOW_S)


def test_the_cursor_stays_on_its_row_when_others_move() -> None:
    async def play(screen: Screen) -> None:
        await screen.show(WELL)
        await screen.press("3", "end", "up")
        assert "spreads/2, held by slot 0" in screen.text()
        fewer = {id_: each for id_, each in answers(SECONDS).partitions.items() if id_.stage == "spreads"}
        logs = Logs({}, dict.fromkeys(fewer, 130_000))
        await screen.show(after(WELL, replace(answers(SECONDS), partitions=fewer, logs=logs), NOW_S))
        assert "spreads/2, held by slot 0" in screen.text()
        assert "row 3 of 4" in screen.lines()[-1]

    on_screen(play, at_s=NOW_S)


def test_columns_that_do_not_fit_come_with_the_arrows_and_all_of_a_row_stands_below() -> None:
    async def play(screen: Screen) -> None:
        await screen.show(WELL)
        await screen.press("3")
        titles = screen.lines()[3]
        assert {"owner", "lag", "held"} <= set(titles.split())
        seen = set(titles.split())
        for _ in range(3):
            await screen.press("right")
            seen |= set(screen.lines()[3].split())
        assert {"offset", "keys", "snapshot", "folded", "p50", "late", "dead"} <= seen
        await screen.press("left", "left", "left")
        assert screen.lines()[3] == titles
        await screen.press("end", "up")
        below = " ".join(line.strip() for line in screen.lines()[-9:])
        for text in (
            "watermark 28 s behind the clock",
            "held back by spreads/orders/3 for 27 s",
            "1,826 keys",
            "snapshot at offset 120,922, 3 s old: 80 records were folded since",
            "messages late 12",
        ):
            assert text in below

    on_screen(play, at_s=NOW_S)


def test_a_wide_screen_has_more_columns() -> None:
    async def play(screen: Screen) -> None:
        await screen.show(WELL)
        await screen.press("3")
        assert {"owner", "offset", "lag", "folded", "p99", "held", "snapshot", "keys", "late"} <= set(
            screen.lines()[3].split()
        )

    on_screen(play, at_s=NOW_S, size=(160, 24))


def test_a_filter_shows_the_rows_that_hold_all_words_until_escape() -> None:
    async def play(screen: Screen) -> None:
        await screen.show(WELL)
        await screen.press("3", "slash", *"SPREADS/ORDERS/3", "space", "2", "enter")
        rows = [line.split()[0] for line in screen.lines()[5:8] if line.strip()]
        assert rows[0] == "spreads/2"
        assert "filter 'SPREADS/ORDERS/3 2'" in screen.lines()[-1]
        await screen.press("slash", *" nothing", "enter")
        assert "nothing matches" in screen.text()
        await screen.press("escape")
        assert "row 1 of 8" in screen.lines()[-1]
        await screen.press("slash", "x", "tab", "shift+tab")
        assert "filter 'x'" in screen.lines()[-1]
        assert screen.lines()[-2].strip() != "x", "another page, and nobody types any more"
        await screen.press("escape", "slash", "q", "1", "escape")
        assert "row 1 of 8" in screen.lines()[-1], "keys are words while one types them"

    on_screen(play, at_s=NOW_S)


def test_dead_letters_are_by_computation_and_reason_and_unknown_ones_are_not_none() -> None:
    async def play(screen: Screen) -> None:
        await screen.show(WELL)
        await screen.press("4")
        assert screen.lines()[5].split() == ["check", "12", "08:00:00", "ValueError:", "no", "price"]
        assert "bettong dead-letters show APP.py 0.0.11" in screen.text()
        fresh = screen.colours("spread_window")
        await screen.show(replace(WELL, reasons=None))
        assert "give --kafka" in screen.text()
        assert "no dead letters" not in screen.text()
        await screen.show(replace(WELL, reasons_fault="topic gone"))
        assert "not read: topic gone" in screen.text()
        assert screen.colours("spread_window").isdisjoint(fresh), "grey"
        await screen.show(replace(WELL, reasons=replace(REASONS, rows={}, skipped=4000)))
        assert "no dead letters" in screen.text()
        assert "4,000 records before them were not read" in screen.text()

    on_screen(play, at_s=NOW_S)


def test_an_application_without_partitions_or_messages_has_every_page() -> None:
    empty = Picture(watched(None, inspected(DeploymentAnswers(), {}), at_s=0.0, unix_s=BEGUN_S))
    said = {
        "1": "no service is known yet",
        "2": "no stage has reported yet",
        "3": "no partition has reported yet",
        "4": "unknown",
        "5": "nothing has changed",
    }

    async def play(screen: Screen) -> None:
        await screen.show(empty)
        for key, text in said.items():
            await screen.press(key, "down", "s", "r", "pagedown", "right")
            assert text in screen.text()

    on_screen(play)


LONG = "a-very-long-name-of-a-stage-" * 8


def renamed(found: DeploymentAnswers, name: str) -> DeploymentAnswers:
    def other(by_id: Mapping[PartitionId, object]) -> dict[PartitionId, object]:
        return {
            PartitionId(name, id_.partition) if id_.stage == "orders" else id_: each
            for id_, each in by_id.items()
        }

    assert found.logs is not None
    logs = Logs(other(found.logs.begins), other(found.logs.ends))  # type: ignore[arg-type]
    return replace(found, partitions=other(found.partitions), logs=logs, slots={})  # type: ignore[arg-type]


def of_one(found: DeploymentAnswers) -> Watched:
    return watched(None, inspected(found), at_s=0.0, unix_s=BEGUN_S)


def test_very_long_names_keep_their_end_and_numbers_stay_whole() -> None:
    async def play(screen: Screen) -> None:
        await screen.show(Picture(of_one(renamed(answers(20), LONG))))
        await screen.press("3")
        rows = screen.lines()[5:9]
        assert all("…" in row.split()[0] for row in rows)
        assert [row.split()[0][-2:] for row in rows] == ["/0", "/1", "/2", "/3"]
        assert all(len(line) <= 80 for line in screen.lines())
        await screen.press("2")
        assert "…" in screen.lines()[5]
        assert LONG[:40] in screen.text(), "all of it below"

    on_screen(play)


def test_wide_letters_take_their_room() -> None:
    async def play(screen: Screen) -> None:
        await screen.show(Picture(of_one(renamed(answers(20), "注文" * 30))))
        await screen.press("3")
        ends = {len(line.encode("utf-16-le")) for line in screen.lines()[5:9]}
        assert len(ends) == 1, "columns are aligned"

    on_screen(play)


def test_what_services_say_never_reaches_the_terminal_as_orders() -> None:
    evil = "\x1b]0;mine\x07\x1b[2J[bold red]x[/]\r\n\x9b1m"
    found = answers(20)
    live = {
        **found.live,
        "receiver": {**dict.fromkeys(found.live["receiver"], evil), "service": "receiver"},
        evil: {"service": evil, "state": evil, "detail": evil, "age_s": "nan", "ttl_s": "x"},
    }
    records = {id_: dict.fromkeys(record, evil) for id_, record in renamed(found, evil).partitions.items()}
    garbage = replace(renamed(found, evil), live=live, partitions=records)
    reasons = dead_letters({(evil, evil): 3})

    async def play(screen: Screen) -> None:
        await screen.show(Picture(of_one(garbage), reasons, fault=evil, reasons_fault=evil))
        for number in range(1, 8):
            await screen.press(str(number), "down")
            text = screen.text()
            assert all(each.isprintable() or each == "\n" for each in text), repr(text)
        await screen.press("3")
        assert "[bold red]x[/]" in screen.text()

    on_screen(play, size=(160, 40))


def test_help_names_every_key_and_any_of_its_keys_closes_it() -> None:
    async def play(screen: Screen) -> None:
        await screen.show(WELL)
        await screen.press("question_mark")
        words = screen.text().split()
        assert {"1", "Tab,", "up", "left", "s", "S", "r", "/", "t", "q"} <= set(words)
        await screen.show(SICK)
        assert "changes nothing" in screen.text(), "it stays while what is behind it changes"
        await screen.press("escape")
        assert "HELD UP" in screen.lines()[0]
        await screen.press("t", "2")
        assert "[2 Stages]" in screen.text()
        await screen.press("tab", "tab", "shift+tab")
        assert "[3 Partitions]" in screen.text()
        await screen.press("q")
        assert screen.app._exit

    on_screen(play, at_s=NOW_S)


def test_accounts_that_do_not_add_up_are_said_in_words_below_the_table() -> None:
    def short(second: int, found: DeploymentAnswers) -> DeploymentAnswers:
        partition = PartitionId("orders", 1)
        record = dict(found.partitions[partition])
        record["accounts"] = record["accounts"].replace(record["messages"][:3], "9", 1)
        return replace(found, partitions={**found.partitions, partition: record})

    async def play(screen: Screen) -> None:
        await screen.show(Picture(watched_for(2, short)))
        await screen.press("7")
        assert "orders, into the stage, orders" in screen.text()
        assert "orders took 9" in screen.text()

    on_screen(play, at_s=1.0)
