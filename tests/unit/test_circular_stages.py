"""A stage that gets its own messages back: its watermark would wait for itself, so event time is refused there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import pytest

import bettong
from bettong import Application, ApplicationError, Stream
from bettong.application.plan import plan
from bettong.frames.frame import tick_record
from bettong.identifiers import Origin
from bettong.topics import stage_topic
from bettong.worker.stage_program import program
from tests.samples.worker import data, fold, results, worker

MINUTE = timedelta(minutes=1)
MINUTE_NS = 60 * 10**9


@dataclass
class Click:
    person: str
    page: str
    at: int


@dataclass
class Clicks:
    """Of a key in a minute."""

    key: str
    clicks: int


@dataclass
class Kept:
    due_at: bettong.Timer = bettong.NEVER
    clicks: int = 0


@dataclass
class KeptByLog:
    due_at: bettong.LogTimer = bettong.NEVER
    clicks: int = 0


def click(message: Click, state: Kept) -> Click | None:
    del message, state
    return None


def click_by_log(message: Click, state: KeptByLog) -> Click | None:
    del message, state
    return None


def due(fired: bettong.Fired[str], state: Kept) -> Click:
    del state
    return Click(fired.key, "", fired.at)


def due_by_log(fired: bettong.Fired[str], state: KeptByLog) -> Click:
    del state
    return Click(fired.key, "", fired.at)


PER_MINUTE = bettong.aggregate(Clicks, clicks=bettong.Count())


def windows(stream: Stream[Any]) -> Stream[Any]:
    return stream.window(bettong.tumbling(MINUTE), PER_MINUTE, name="minutes")


def timer(stream: Stream[Any]) -> Stream[Any]:
    return stream.stateful(click, state=Kept, name="minutes", timers={"due_at": due})


def ttl(stream: Stream[Any]) -> Stream[Any]:
    return stream.stateful(
        click, state=Kept, name="minutes", ttl=MINUTE, ttl_clock="event", timers={"due_at": due}
    )


def by_log_clock(stream: Stream[Any]) -> Stream[Any]:
    timers = {"due_at": due_by_log}
    return stream.stateful(click_by_log, state=KeptByLog, name="minutes", ttl=MINUTE, timers=timers)


def source(app: Application, name: str = "clicks") -> Stream[Any]:
    return app.source(name, schema=Click, key="person", event_time="at")


Pipeline = Callable[[Callable[[Stream[Any]], Stream[Any]]], Application]


def merged_with_its_source(minutes: Callable[[Stream[Any]], Stream[Any]]) -> Application:
    app = Application("meters")
    clicks = source(app)
    minutes(clicks.key_by("page").merge(clicks)).sink("out")
    return app


def beside_what_is_merged(minutes: Callable[[Stream[Any]], Stream[Any]]) -> Application:
    """The window reads the source alone; its stage is that of what is merged all the same."""
    app = Application("meters")
    clicks = source(app)
    minutes(clicks).sink("out")
    clicks.key_by("page").merge(clicks).filter(is_page).sink("pages")
    return app


def behind_it(minutes: Callable[[Stream[Any]], Stream[Any]]) -> Application:
    app = Application("meters")
    clicks = source(app)
    both = clicks.key_by("page").merge(clicks).filter(is_page)
    minutes(both.key_by("person", name="again")).sink("out")
    return app


def merged_with_what_is_computed(minutes: Callable[[Stream[Any]], Stream[Any]]) -> Application:
    app = Application("meters")
    pages = source(app).filter(is_page)
    minutes(pages.key_by("page", name="clicks-by-page").merge(pages)).sink("out")
    return app


def is_page(click: Click) -> bool:
    return bool(click.page)


@pytest.mark.parametrize("minutes", [windows, timer, ttl])
@pytest.mark.parametrize(
    "pipeline",
    [merged_with_its_source, merged_with_what_is_computed, beside_what_is_merged, behind_it],
)
def test_event_time_in_or_behind_a_stage_that_gets_its_own_messages_back_is_refused(
    pipeline: Pipeline, minutes: Callable[[Stream[Any]], Stream[Any]]
) -> None:
    with pytest.raises(ApplicationError) as refused:
        plan(pipeline(minutes))
    assert str(refused.value) == (
        "'minutes' goes by event time, which would stand still: 'clicks-by-page' brings messages of stage 'clicks' back"
        " into it, so that its watermark would wait for itself. Merge what key_by made with streams that key_by made,"
        " too (put key_by on each of them before the merge): then another stage reads them"
    )


@pytest.mark.parametrize(
    "pipeline",
    [merged_with_its_source, merged_with_what_is_computed, beside_what_is_merged, behind_it],
)
def test_it_may_go_by_the_log_clock(pipeline: Pipeline) -> None:
    planned = plan(pipeline(by_log_clock))
    assert not any(stage.needs_time for stage in planned.stages)


def test_a_circle_of_several_stages_is_refused_by_its_streams() -> None:
    app = Application("meters")
    clicks, views = source(app), source(app, "views")
    windows(clicks.key_by("page").merge(views)).sink("out")
    clicks.merge(views.key_by("page")).filter(is_page).sink("pages")
    with pytest.raises(
        ApplicationError, match="'clicks-by-page', 'views-by-page' bring messages of stage 'clicks'"
    ):
        plan(app)


def test_a_stage_in_front_of_a_circle_may_go_by_event_time() -> None:
    app = Application("meters")
    early, clicks = source(app, "early"), source(app)
    windows(early).sink("out")
    clicks.key_by("page").merge(clicks, early.key_by("page", name="early-by-page")).filter(is_page).sink(
        "pages"
    )
    planned = plan(app)
    assert {stage.name for stage in planned.stages if stage.needs_time} == {"early"}


def test_with_key_by_on_all_that_is_merged_windows_fire() -> None:
    app = Application("meters")
    clicks = source(app)
    both = clicks.key_by("page", name="pages").merge(clicks.key_by("person", name="persons"))
    windows(both).sink("out")
    planned = plan(app)
    first, second = (worker(program(stage, compiled=False)) for stage in planned.stages)
    of_both = [Click("ann", "/", 0), Click("bob", "/", 1)]
    found = fold(first, [data("clicks/x", 1, of_both, watermark_ns=2 * MINUTE_NS)])
    passed = [each.value for each in found if each.topic == stage_topic("meters", "pages")]
    reached = {Origin(f"{name}/clicks/0"): 2 * MINUTE_NS for name in ("pages", "persons")}
    found = fold(second, [*passed, tick_record("log", 1, reached)])
    counted = results(found, "meters.sink.out", Clicks)
    assert counted == [Clicks("/", 2), Clicks("ann", 1), Clicks("bob", 1)]
