"""`bettong.testing.end_stream`: a client that has finished holds event time back no longer."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

import bettong
from bettong.testing import (
    CRASH,
    END,
    RESEND,
    RESTORE,
    AppSession,
    AtEachRecord,
    CaseError,
    CheckError,
    check,
    clock,
    end_stream,
    frame,
    run,
    watermark,
)
from tests.samples.clicks import Click, Hour, counting_app, hours_app

HOUR_NS = 3600 * 10**9
# A client that is past the first hour, and one that is not.
FAST = frame("clicks", Click("a", "p", 3 * HOUR_NS), client="fast")
SLOW = frame("clicks", Click("a", "p", 5), client="slow")
EARLY = frame("clicks", Click("a", "p", 6), client="fast")


@pytest.mark.parametrize("partitions", [1, 4])
def test_a_client_that_has_finished_no_longer_holds_the_watermark(partitions: int) -> None:
    session = AppSession(hours_app, partitions=partitions)
    assert session.step(EARLY, SLOW, FAST)["hours"] == []
    assert session.step(end_stream("clicks", client="slow"))["hours"] == [Hour("p", 0, 2)]
    assert session.finish().late == 0


def test_one_that_has_not_finished_holds_it() -> None:
    session = AppSession(hours_app)
    session.step(EARLY, SLOW, FAST)
    assert session.step(end_stream("clicks", client="fast"))["hours"] == []
    assert session.finish(until=END).outputs["hours"] == [Hour("p", 0, 2), Hour("p", 3 * HOUR_NS, 1)]


def test_where_all_have_finished_event_time_goes_on_with_the_log_clock() -> None:
    session = AppSession(hours_app)
    # Its watermark is 10 minutes: messages of this source may be a minute out of order.
    session.step(("clicks", Click("a", "p", 11 * 60 * 10**9)), end_stream())
    assert session.step(clock(timedelta(minutes=49)))["hours"] == []
    assert session.step(clock(timedelta(minutes=2)))["hours"] == [Hour("p", 0, 1)]


def test_the_end_of_time_comes_also_where_all_have_finished() -> None:
    first = ("clicks", Click("a", "p", 5))
    for ended in ([first, end_stream("clicks")], [first, end_stream(), watermark(7), end_stream()]):
        assert run(hours_app, ended, until=END).outputs["hours"] == [Hour("p", 0, 1)]


def same(click: Click) -> Click:
    return click


def two_stages() -> bettong.Application:
    app = bettong.Application("two-stages")
    clicks = app.source("clicks", schema=Click, key="user", event_time="at")
    counted = bettong.aggregate(Hour, clicks=bettong.Count())
    by_page = clicks.map(same).key_by("page")
    by_page.window(bettong.tumbling(timedelta(hours=1)), counted, name="per-hour").sink("hours")
    return app


two_stages_app = two_stages()


@pytest.mark.parametrize("partitions", [1, 3])
def test_a_stage_behind_another_key_hears_of_it(partitions: int) -> None:
    session = AppSession(two_stages_app, partitions=partitions)
    assert session.step(EARLY, SLOW, FAST)["hours"] == []
    assert session.step(end_stream(client="slow"))["hours"] == [Hour("p", 0, 2)]


@pytest.mark.parametrize("app", [hours_app, two_stages_app, counting_app], ids=lambda app: app.name)
def test_crashes_repetitions_and_frames_around_an_end_make_no_difference(app: bettong.Application) -> None:
    late = frame("clicks", Click("a", "p", 7), client="fast")
    more = frame("clicks", Click("b", "q", 8 * HOUR_NS), client="third")
    for last in ([], [end_stream()], [end_stream("clicks", client="third")]):
        check(app, [EARLY, SLOW, FAST, end_stream(client="slow"), late, more, *last])
    moments = [EARLY, SLOW, RESEND, FAST, end_stream(client="slow"), CRASH, RESEND, RESTORE, late]
    plain = [each for each in moments if each not in (RESEND, CRASH, RESTORE)]
    for each in AtEachRecord:
        assert run(app, moments, at_each_record=each).outputs == run(app, plain).outputs


@pytest.mark.parametrize(
    ("inputs", "words"),
    [
        (
            [SLOW, end_stream(), SLOW],
            r"input 2: client 'slow' of source 'clicks' has ended its stream, and none returns under its name",
        ),
        ([end_stream()], r"input 0: end_stream\(\): no such client has sent anything"),
        ([SLOW, end_stream(client="fast")], r"end_stream\(client='fast'\): no such client has sent anything"),
        ([SLOW, end_stream(), end_stream()], r"input 2: .* or it has ended its stream"),
        ([SLOW, FAST, end_stream(), watermark(5, client="slow")], r"input 3: .* or it has ended its stream"),
        ([SLOW, end_stream("visits")], r"input 1: unknown source 'visits'; the application has 'clicks'"),
    ],
)
def test_an_end_that_makes_no_sense_is_refused_by_its_number(inputs: list[Any], words: str) -> None:
    with pytest.raises(CaseError, match=words):
        run(hours_app, inputs)


@dataclass
class Waiting:
    due: bettong.Timer = bettong.NEVER


@dataclass
class Left:
    user: str
    calls: int


CALLS: list[str] = []


def wait(click: Click, waiting: Waiting) -> None:
    waiting.due = click.at + 60 * 10**9


def leave(fired: bettong.Fired[str], waiting: Waiting) -> Left:
    CALLS.append(fired.key)
    return Left(fired.key, len(CALLS))


forgetful_app = bettong.Application("forgetful")
forgetful_app.source("clicks", schema=Click, key="user", event_time="at").stateful(
    wait, state=Waiting, name="waits", timers={"due": leave}
).sink("left")


def test_the_smallest_case_keeps_the_end_that_shows_a_fault() -> None:
    more = [frame("clicks", Click(user, "p", 4 * HOUR_NS), client="fast") for user in "bcd"]
    with pytest.raises(CheckError) as caught:
        check(forgetful_app, [SLOW, FAST, *more, end_stream("clicks", client="slow"), *more])
    test = caught.value.test
    assert "end_stream('clicks', client='slow')" in test
    (imports,) = [line for line in test.splitlines() if line.startswith("from bettong.testing import")]
    assert "end_stream" in imports
    assert test.count("Click(") == 2 * 2, test
    compile(test, "test_pasted.py", "exec")
