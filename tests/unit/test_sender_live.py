"""A sender's live record: written at once, again and again, and once more at the end."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from typing import Any

import structlog

from bettong_sender.live import LiveReport

HOUR_S = 3600.0


class Kept:
    """Records as Redis would take them."""

    def __init__(self) -> None:
        self.records: list[dict[str, Any]] = []
        self.written = threading.Event()

    def write_live(self, instance: str, metrics: dict[str, Any], ttl_s: float) -> None:
        del instance, ttl_s
        self.records.append(metrics)
        self.written.set()


def test_a_sender_says_at_once_that_it_lives_and_at_its_end_that_it_stops() -> None:
    kept: Any = Kept()
    records: list[Mapping[str, str | int | float]] = [{"state": "starting"}, {"state": "stopping"}]
    with LiveReport(
        kept, "sender-1", lambda: dict(records[len(kept.records)]), HOUR_S, structlog.get_logger()
    ):
        assert kept.written.wait(60), "the first record waits for its interval"
    assert [each["state"] for each in kept.records] == ["starting", "stopping"]
