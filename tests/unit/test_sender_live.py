"""A sender's live record: written at once, again and again, and once more at the end."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any, cast

import pytest
import structlog

from bettong.edges.redis_store import LiveMetrics
from bettong_sender.live import LiveReport

HOUR_S = 3600.0
MINUTE_S = 60.0
SECOND_S = 1.0


class Kept:
    """Records as Redis would take them."""

    def __init__(self, age_s: float | None = None) -> None:
        self._age_s = age_s
        self.records: list[dict[str, Any]] = []
        self.written = threading.Event()

    def write_live(self, instance: str, metrics: dict[str, Any], ttl_s: float) -> None:
        del instance, ttl_s
        self.records.append(metrics)
        self.written.set()

    def age_s(self) -> float | None:
        return self._age_s


def test_a_sender_says_at_once_that_it_lives_and_at_its_end_that_it_stops() -> None:
    kept: Any = Kept()
    records: list[Mapping[str, str | int | float]] = [{"state": "starting"}, {"state": "stopping"}]
    with LiveReport(
        kept, "sender-1", lambda: dict(records[len(kept.records)]), HOUR_S, structlog.get_logger()
    ):
        assert kept.written.wait(60), "the first record waits for its interval"
    assert [each["state"] for each in kept.records] == ["starting", "stopping"]


@pytest.mark.parametrize(
    ("interval_s", "age_s", "listed"),
    [
        (SECOND_S, None, False),
        (SECOND_S, 7.9, True),
        (SECOND_S, 8.1, False),
        (MINUTE_S, 479.0, True),
        (MINUTE_S, 481.0, False),
    ],
)
def test_redis_lists_a_sender_for_certain_while_its_record_has_some_time_left(
    interval_s: float, age_s: float | None, *, listed: bool
) -> None:
    kept: Any = Kept(age_s)
    report = LiveReport(kept, "sender-1", dict, interval_s, structlog.get_logger())
    assert (report.listed_since_s() is not None) is listed


@pytest.mark.parametrize(("away_s", "had_gap"), [(6.0, False), (9.0, True)])
def test_a_sender_that_redis_did_not_list_for_a_while_is_listed_only_since_then(
    away_s: float, *, had_gap: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    now_s = [100.0]
    monkeypatch.setattr("bettong_sender.live.time.monotonic", lambda: now_s[0])
    kept: Any = Kept()
    report = LiveReport(kept, "sender-1", dict, SECOND_S, structlog.get_logger())
    report._write()
    kept._age_s = 0.0
    assert report.listed_since_s() == 100.0
    now_s[0] += away_s
    kept._age_s = away_s
    report._write()
    kept._age_s = 0.0
    assert report.listed_since_s() == (now_s[0] if had_gap else 100.0)


def test_the_age_of_a_record_counts_from_before_it_was_written(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = [100.0]

    class SlowStore:
        def key(self, *_: str) -> str:
            return ""

        def ask(self, *_: object, **__: object) -> None:
            now_s[0] += 3.0

    monkeypatch.setattr("bettong.edges.redis_store.live.time.monotonic", lambda: now_s[0])
    live = LiveMetrics(cast("Any", SlowStore()))
    assert live.age_s() is None
    live.write_live("sender-1", {}, 10.0)
    assert live.age_s() == 3.0
