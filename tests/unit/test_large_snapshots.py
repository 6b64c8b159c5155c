"""States larger than protobuf can hold: saved and restored as others are, here with a bound of some kilobytes."""

from __future__ import annotations

from datetime import timedelta

import pytest

from bettong.worker.stage_program import program
from tests.samples.worker import Reading, data, fold, meters, worker

# More than are written whole each time.
KEYS = 6_000


@pytest.mark.parametrize("compiled", [False, True], ids=["plain", "compiled"])
def test_states_that_protobuf_cannot_hold_are_saved_and_restored(
    monkeypatch: pytest.MonkeyPatch, *, compiled: bool
) -> None:
    monkeypatch.setattr("bettong.snapshots.snapshot._PROTOBUF_BYTES_MAX", 10_000)
    ready = program(meters(timedelta(hours=1)).stages[0], compiled=compiled)
    one = worker(ready)
    fold(one, [data("readings/a", 1, [Reading(f"{key:06}", key) for key in range(KEYS)], ingest_ns=1)])
    increments = [one.increment()[1]]
    fold(one, [data("readings/a", 2, [Reading(f"{key:06}", 1) for key in range(0, KEYS, 10)], ingest_ns=2)])
    increments.append(one.increment()[1])
    assert {each[:4] for each in increments} == {b"BTG3"}
    assert len(increments[1]) < len(increments[0]), "the second one holds what has changed"
    again = worker(ready)
    for each in increments:
        again.restore(each)
    assert again.keys == KEYS
    assert again.snapshot() == one.snapshot()
