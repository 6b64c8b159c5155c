"""Reference tables of an application that was repartitioned: partitions out of use name no versions."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import cast

import pytest
import structlog

from bettong.application.plan import plan
from bettong.closing import Closing
from bettong.config.processor import ProcessorSettings
from bettong.config.reading import read
from bettong.edges.redis_store import RedisStore
from bettong.identifiers import TopicPartition
from bettong_processor.references import opening
from bettong_processor.references.loading import Loads
from tests.samples.reference_join import app_of


class Admin(Closing):
    """Of topics with eight partitions."""

    def __init__(self, where: object) -> None: ...

    def beginnings(self, topics: Iterable[str]) -> dict[TopicPartition, int]:
        """See LogAdmin."""
        return {TopicPartition(topic, number): 10 * number for topic in topics for number in range(8)}

    def close(self) -> None: ...


def test_a_version_is_named_once_partitions_in_use_name_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(opening, "LogAdmin", Admin)
    settings = read(
        ProcessorSettings, {"application": "app.py", "partitions": "3", "snapshots": tmp_path.as_uri()}
    )
    with RedisStore("redis://127.0.0.1:1/0", "meters") as redis:
        planned = plan(app_of())
        (table,) = opening.kept_tables(settings, planned, redis, cast("Loads", None), structlog.get_logger())
    assert table.begins(table.stage) == {0: 0, 1: 10, 2: 20}
