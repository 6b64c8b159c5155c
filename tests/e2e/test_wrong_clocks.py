"""Two senders that started with clocks far off in both directions, one log: nothing is lost, doubled or forgotten."""

import json
from collections import defaultdict
from pathlib import Path

from bettong.chaos.clock import MovableClock
from bettong.client import Sender
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.local.options import SuiteOptions
from bettong.local.suite import Suite
from bettong.metrics import GAPS
from tests.waiting import eventually

# What is kept of a key outlives the clock that is behind (30 h), but not both of them together (60 h).
APPLICATION = """
from dataclasses import dataclass
from datetime import timedelta
import bettong

@dataclass
class Note:
    key: str
    number: int

@dataclass
class Seen:
    count: int = 0

@dataclass
class Counted:
    key: str
    number: int
    count: int

def count(note: Note, seen: Seen) -> Counted:
    seen.count += 1
    return Counted(note.key, note.number, seen.count)

app = bettong.Application("clocks")
notes = app.source("notes", schema=Note, key="key")
notes.stateful(count, state=Seen, ttl=timedelta(hours=48)).sink("counted")
"""
WRONG_S = {"sender": 30 * 3600.0, "sender-2": -30 * 3600.0}
KEYS = "abcd"
ROUNDS = 20


def test_senders_that_start_with_wrong_clocks_feed_one_log_and_each_message_counts_once(
    tmp_path: Path,
) -> None:
    program, kept = tmp_path / "app.py", tmp_path / "kept"
    program.write_text(APPLICATION)
    clocks = {name: MovableClock(tmp_path / name) for name in WRONG_S}
    for name, clock in clocks.items():
        clock.set(WRONG_S[name])
    options = SuiteOptions(
        application=str(program),
        partitions=2,
        senders=2,
        keep=kept,
        settings={"spark_master": "local[1]", "snapshot_interval_ms": "200"},
        environment={name: clock.environment for name, clock in clocks.items()},
    )

    def results() -> list[dict[str, object]]:
        files = (kept / "results" / "counted").glob("*.jsonl")
        return [json.loads(line) for file in files for line in file.read_bytes().splitlines()]

    with Suite(options) as suite:
        addresses = [suite.record.addresses[name] for name in ("sender-2", "sender")]
        # The one that is behind comes first, so that the clock of the log jumps as far as it can.
        with (
            Sender(addresses[0], "notes", "behind") as behind,
            Sender(addresses[1], "notes", "ahead") as ahead,
        ):
            for number in range(ROUNDS):
                for each, client in enumerate((behind, ahead)):
                    client.send_columns({"key": list(KEYS), "number": [2 * number + each] * len(KEYS)})
                    client.flush(60)
        eventually(lambda: len(results()) >= 2 * ROUNDS * len(KEYS), seconds=120, what="all results")
        with RedisStore(suite.record.redis_connection, suite.record.name) as store:
            partitions = LiveMetrics(store).partitions()
        assert {record[GAPS.name] for record in partitions.values()} == {"0"}
        logs = [suite.record.services[name].log.read_text() for name in WRONG_S]
    assert all("the clocks of this machine and of Redis differ" in log for log in logs)
    found = defaultdict(list)
    for result in results():
        found[result["key"]].append((result["number"], result["count"]))
    assert dict(found) == {key: [(number, number + 1) for number in range(2 * ROUNDS)] for key in KEYS}
