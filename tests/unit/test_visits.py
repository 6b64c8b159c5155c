"""`examples/visits.py`: visits and hours of a click log."""

from __future__ import annotations

import io

from rich.console import Console

from bettong.application.plan import plan
from bettong.cli.check import tree
from bettong.frames.frame import tick_record
from bettong.identifiers import NO_SEQUENCE, Origin
from bettong.worker.output.downstream_watermarks import TICK_NS
from bettong.worker.stage_program import program
from examples import visits as of
from tests.samples.example_feeds import clicks, session
from tests.samples.worker import FRAME_BYTES_MAX, data, fold, results, worker
from tests.simulation.running_stages import RunningStages

MINUTE = 60 * 10**9
PARTITIONS = 4
POLL_MS = 20


def test_visits_end_after_half_an_hour_and_hours_at_the_full_hour() -> None:
    planned = plan(of.app)
    visits, hours = (worker(program(stage, compiled=False)) for stage in planned.stages)
    clicks = [
        of.Click("ann", "/", 0),
        of.Click("ann", "/prices", 2 * MINUTE),
        of.Click("bob", "/prices", 10 * MINUTE),
        of.Click("ann", "/buy", 32 * MINUTE),
        of.Click("bob", "/prices", 70 * MINUTE),
    ]
    found = fold(visits, [data("clicks/x", 1, clicks, watermark_ns=70 * MINUTE)])
    assert results(found, "meters.sink.visits", of.Visit) == [
        of.Visit("bob", 10 * MINUTE, 0.0, 1, "/prices", "/prices"),
        of.Visit("ann", 0, 1920.0, 3, "/", "/buy"),
    ]
    rekeyed = [each.value for each in found if each.topic == "meters.stage.clicks-by-page"]
    assert len(rekeyed) == 1
    found = fold(hours, [*rekeyed, tick_record("log", 1, {Origin("clicks-by-page/clicks/0"): 70 * MINUTE})])
    hour = results(found, "meters.sink.hours", of.Hour)
    assert hour == [of.Hour("/", 0, 1, 1), of.Hour("/buy", 0, 1, 1), of.Hour("/prices", 0, 2, 2)]


def test_an_application_of_two_stages_by_event_time_comes_to_rest() -> None:
    """Each reports to the next one what is new, and what that leads to is no reason to report again."""
    planned = plan(of.app)
    sources = {source.name: source for source in planned.sources}
    client = session(planned, sources["clicks"], partitions=PARTITIONS, frame_bytes_max=FRAME_BYTES_MAX)
    running, begun_ns = RunningStages(planned, PARTITIONS), 10**18
    appends = client.open(0, begun_ns, NO_SEQUENCE).appends
    for sequence, (_, frame) in enumerate(clicks(sources), 1):
        frame.sequence = sequence
        appends += client.take(frame, 0, begun_ns + sequence).appends
    for append in appends:
        running.fold(append.topic, append.partition, append.value)
    now_ns, waits = begun_ns, []
    for _ in range(10_000 // POLL_MS):
        now_ns += POLL_MS * 10**6
        waits += [now_ns] if running.fold_ticks(now_ns) else []
    assert waits, "the hours of a partition that got no click for long are reported"
    assert waits[-1] < begun_ns + 2 * TICK_NS
    before = len(running.delivered["hours"])
    for append in client.end(0, now_ns).appends:
        running.fold(append.topic, append.partition, append.value)
    for _ in range(10_000 // POLL_MS):
        now_ns += POLL_MS * 10**6
        waits += [now_ns] if running.fold_ticks(now_ns) else []
    assert waits[-1] < now_ns - 10**10 + 2 * TICK_NS
    assert len(running.delivered["hours"]) > before
    assert sum(each.clicks for each in running.delivered["visits"]) == 600
    assert sum(each.clicks for each in running.delivered["hours"]) == 600


def test_check_says_which_windows_there_are() -> None:
    shown = io.StringIO()
    Console(file=shown, width=200).print(tree(plan(of.app)))
    assert "window Visits: clicks -> Visit, sessions of Visits (gap 0:30:00, late drop)" in shown.getvalue()
    assert "ranges of Hour (size 1:00:00, slide 1:00:00, late drop)" in shown.getvalue()
