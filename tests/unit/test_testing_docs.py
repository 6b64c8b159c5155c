"""The code of docs/testing.md runs, as one module, and its tests pass."""

from __future__ import annotations

import inspect
from pathlib import Path
from types import ModuleType

import pytest

from bettong.application.plan import plan
from bettong.frames.columns import Columns
from bettong.ingest.session import Session, SourceRoute
from bettong.testing import LoggedRecord
from bettong.topics import stage_topic
from bettong.v1.ingest_pb2 import Hello, IngestFrame
from tests.samples.page_code import page_module

PAGE = Path(__file__).resolve().parents[2] / "docs" / "testing.md"


@pytest.fixture(scope="module")
def page() -> ModuleType:
    module = page_module(PAGE)
    module.__dict__["recorded_last_night"] = lambda: recorded(module)
    return module


def recorded(page: ModuleType) -> list[LoggedRecord]:
    """What a sender wrote of ann's and bob's clicks."""
    planned = plan(page.app)
    (source,) = planned.sources
    topic = stage_topic(planned.application, "clicks")
    session = Session(SourceRoute(source, topic, "dead", 1, 2**20), Hello(source="clicks", stream="x"), [-1])
    clicks = [page.Click(user, "/", 1) for user in ("ann", "bob", "ann")]
    frame = IngestFrame(sequence=1, columns=Columns.of_messages(source.schema, clicks).payload())
    appends = session.take(frame, 0, 10**18).appends
    return [LoggedRecord(each.topic, 0, offset, each.value) for offset, each in enumerate(appends)]


NAMES = [
    "test_clicks_are_counted_through_a_crash",
    "test_nothing_makes_a_difference",
    "test_an_hour_is_counted_when_it_is_over",
    "test_a_client_that_has_finished_is_not_waited_for",
    "test_the_smallest_case_is_shown",
    "test_no_messages_make_a_difference",
    "test_last_night",
]


@pytest.mark.parametrize("name", NAMES)
def test_a_test_of_the_page_passes(name: str, page: ModuleType, tmp_path: Path) -> None:
    test = getattr(page, name)
    test(**({"tmp_path": tmp_path} if inspect.signature(test).parameters else {}))


def test_no_test_of_the_page_is_left_out(page: ModuleType) -> None:
    assert [name for name in vars(page) if name.startswith("test_")] == NAMES
