"""The applications of examples/nexmark, run in memory over events."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import astuple
from datetime import timedelta
from functools import lru_cache
from itertools import islice
from pathlib import Path
from typing import Any

import model
from bettong.application.application import Application
from bettong.application.plan import plan
from bettong.edges.application_file import load, load_anew
from bettong.testing import END, AppSession, AtEachRecord
from bettong.testing.running import ReadyApplication
from tests.samples.nexmark_answers import Events, Row

FOLDER = Path(__file__).resolve().parents[2] / "examples" / "nexmark"
QUERIES = sorted(int(path.stem[1:]) for path in FOLDER.glob("q*.py"))
# Of a query that gives updates: which fields of a row say what it is an update of.
UPDATED_BY: dict[int, tuple[int, ...]] = {4: (0,), 18: (0, 1), 19: (0, 4)}
# Of these, which updates there are between the last ones depends on the order of messages from several partitions.
ORDERED_BY_THE_LOG = {4}
COMPILED = {1, 2, 5, 12, 14, 18}


def application(query: int) -> Application:
    return load(str(FOLDER / f"q{query}.py"))


def application_that_waits(query: int, out_of_order: timedelta) -> Application:
    """The same whose sources may be so much out of order."""
    before, model.OUT_OF_ORDER = model.OUT_OF_ORDER, out_of_order
    try:
        return load_anew(str(FOLDER / f"q{query}.py"))
    finally:
        model.OUT_OF_ORDER = before


def sources_of(app: Application) -> set[str]:
    return {source.name for source in plan(app).sources}


def one_by_one(app: Application, events: Events) -> list[tuple[str, Any]]:
    """Inputs: each message in a frame of its own, of the sources that the application has."""
    sources = sources_of(app)
    return [(source, message) for source, message in events if source in sources]


def in_frames(app: Application, events: Events, frame: int) -> Iterator[tuple[str, list[Any]]]:
    """Inputs: of each so many events, a frame a source."""
    sources = sources_of(app)
    for begin in range(0, len(events), frame):
        messages: dict[str, list[Any]] = defaultdict(list)
        for source, message in events[begin : begin + frame]:
            if source in sources:
                messages[source].append(message)
        yield from messages.items()


def rows(query: int, results: Iterable[Any]) -> Counter[Row]:
    """Results as rows; of updates, the last ones."""
    found = [astuple(each) for each in results]
    if query in UPDATED_BY:
        fields = UPDATED_BY[query]
        found = list({tuple(row[field] for field in fields): row for row in found}.values())
    return Counter(found)


@lru_cache
def ready(query: int, *, compiled: bool) -> ReadyApplication:
    """Ready to run; compiled once."""
    return ReadyApplication(application(query), compiled=compiled)


def results(
    app: ReadyApplication,
    inputs: Iterable[Any],
    *,
    partitions: int = 1,
    at_each_record: AtEachRecord | None = None,
) -> list[Any]:
    """What comes out of the only sink when event time has come to its end; no message is late or a dead letter."""
    session = AppSession(app, partitions=partitions, at_each_record=at_each_record)
    rest = iter(inputs)
    # The first ones bring all sources: a partition waits for the clients that it knows.
    while chunk := list(islice(rest, 200)):
        session.step(*chunk)
    needs_time = any(stage.needs_time for stage in app.plan.stages)
    outcome = session.finish(until=END if needs_time else None)
    assert outcome.dead_letters == []
    assert (outcome.late, outcome.partly_late) == (0, 0)
    (found,) = outcome.outputs.values()
    return found
