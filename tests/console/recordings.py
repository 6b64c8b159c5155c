"""What a running deployment answered, second by second, as it was recorded; and what records it.

bettong up examples/visits.py, send to it, then
python -m tests.console.recordings examples/visits.py .bettong tests/console/recorded/visits.json
"""

from __future__ import annotations

import json
import sys
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from bettong import metrics, queue_metrics
from bettong.event_progress import DueComputation, DueKind, EventProgress, InputProgress
from bettong.hot_keys import HotKey, HotKeys
from bettong.identifiers import PartitionId, partition_origin
from bettong.inspection.deployment import DeploymentAnswers, Logs
from bettong.inspection.live.application import loaded_plan
from bettong.inspection.live.deployment import LiveDeployment
from bettong.inspection.overview import Record
from bettong.latency_parts import PartsOfLate
from bettong.latency_percentiles import SHARES, LatencyPercentiles
from bettong.local.locations import found_locations
from bettong.worker.balance import AccountKind, PartitionAccounts
from bettong_processor.saved_snapshots import SavedSnapshot, SnapshotCost
from tests.samples.watched_deployment import without_measures

FOLDER = Path(__file__).parent / "recorded"
_LOOKS = 8
_ACCOUNTS = metrics.ACCOUNTS.name


@dataclass(frozen=True, slots=True)
class Look:
    """The answers of a time (Unix s)."""

    time_s: float
    answers: DeploymentAnswers


def recorded(name: str) -> list[Look]:
    """A recording, in the order in which it was made."""
    return [_read(each) for each in json.loads((FOLDER / f"{name}.json").read_text())]


def miscounted(look: Look) -> Look:
    """The answers if the first partition with accounts had lost three messages after a computation."""
    id_, record = next((id_, each) for id_, each in look.answers.partitions.items() if _ACCOUNTS in each)
    accounts = PartitionAccounts.of_text(record[_ACCOUNTS])
    rows = tuple(
        row._replace(counts=row.counts._replace(given=row.counts.given + 3))
        if row.kind is AccountKind.ANY
        else row
        for row in accounts.rows
    )
    changed = {**record, _ACCOUNTS: replace(accounts, rows=rows).text()}
    partitions = {**look.answers.partitions, id_: changed}
    return replace(look, answers=replace(look.answers, partitions=partitions))


def timed(look: Look) -> Look:
    """The look, had each partition of `clicks` told how long its window is at work, and which keys it has most of."""
    own, window = (
        [9.5, 0.02, 90.0, 140.0, 150.0, 150.0, 160.0],
        [90.5, 0.03, 610.0, 1900.0, 2400.0, 2600.0, 3100.0],
    )
    times = json.dumps({"": own, "Visits": window})
    hot = HotKeys(500, (HotKey("ann & <bob>", 0.42, 0.4), HotKey("eve", 0.1, 0.05))).to_text()
    partitions = {
        id_: {**record, metrics.TIMES.name: times, metrics.HOT_KEYS.name: hot}
        if id_.stage == "clicks"
        else record
        for id_, record in look.answers.partitions.items()
    }
    return replace(look, answers=replace(look.answers, partitions=partitions))


def explained(look: Look) -> Look:
    """The look, had the receiver told the parts of its latency, and `clicks-by-page` what holds its hours open."""
    at_ns, hour_ns = int(look.time_s * 1e9), 3600 * 10**9
    parts = PartsOfLate(5322, [2.6, 26.6, 10.6, 21.3, 5.3], [1.2, 41.0, 8.0, 33.0, 3.0])
    receiver = {**look.answers.live["receiver"], f"{metrics.LATENCY_PARTS.name}/visits": parts.to_text()}

    def held(id_: PartitionId, record: Record) -> Record:
        reached_ns = int(record[metrics.WATERMARK.name])
        moved_ns = at_ns - (38 * 10**9 if id_.partition == 3 else 10**9)
        own = InputProgress(
            "clicks-by-page/clicks",
            8,
            0,
            partition_origin("clicks-by-page/clicks", id_.partition),
            reached_ns,
            moved_ns,
            moved_ns,
            None,
        )
        start_ns = reached_ns // hour_ns * hour_ns
        due = DueComputation("hours", DueKind.WINDOW, start_ns + hour_ns, start_ns, start_ns + hour_ns)
        return {**record, metrics.EVENT_PROGRESS.name: EventProgress(at_ns, (own,), (due,)).to_text()}

    partitions = {
        id_: held(id_, record) if id_.stage == "clicks-by-page" else record
        for id_, record in look.answers.partitions.items()
    }
    answers = replace(look.answers, live={**look.answers.live, "receiver": receiver}, partitions=partitions)
    return replace(look, answers=answers)


def saved(look: Look) -> Look:
    """The look, had each partition told how large its states are and what its newest snapshot cost; the store does not
    take that of the first one of `clicks`.
    """
    first = min(look.answers.partitions)

    def record(id_: PartitionId, before: Record) -> Record:
        cost = SnapshotCost(look.time_s - 7 * (id_.partition + 1), 4_321 * (id_.partition + 1), 9.5, 1.25)
        return {
            **before,
            **{name: str(value) for name, value in SavedSnapshot(7, cost).metrics().items()},
            metrics.STATE_BYTES.name: str(12_345 * (id_.partition + 1)),
            metrics.SNAPSHOT_FAULT.name: "the <b>bucket</b> does not answer" if id_ == first else "",
        }

    partitions = {id_: record(id_, before) for id_, before in look.answers.partitions.items()}
    return replace(look, answers=replace(look.answers, partitions=partitions))


def held(look: Look) -> Look:
    """The look, had partitions of `clicks`, sender and receiver told of back-pressure and queues, and receivers of two
    sinks of their latencies by percentile, of one with its parts; had each partition of `clicks` 12 late messages and 3
    dead letters.
    """

    def refusing(record: Record) -> dict[str, str]:
        accounts = PartitionAccounts.of_text(record[_ACCOUNTS])
        rows = tuple(
            row._replace(counts=row.counts._replace(late=12, dead_letters=3))
            if row.kind is AccountKind.ANY
            else row
            for row in accounts.rows
        )
        text = replace(accounts, rows=rows).text()
        return {**record, _ACCOUNTS: text, metrics.HELD.name: str(0.05 * look.time_s)}

    partitions = {
        id_: refusing(record) if id_.stage == "clicks" else record
        for id_, record in look.answers.partitions.items()
    }
    within = [0.4 * 1.9**number for number in range(len(SHARES))]
    parts = PartsOfLate(
        1200, [0.6] * 5, [9.0] * 5, [[each * (number + 1) / 20 for each in within] for number in range(5)]
    )
    own = {
        f"{metrics.LATENCY_PERCENTILES.name}/visits": LatencyPercentiles(1200, within).to_text(),
        f"{metrics.LATENCY_PERCENTILES.name}/hours": LatencyPercentiles(7, [2.5] * len(SHARES)).to_text(),
        f"{metrics.LATENCY_PARTS.name}/visits": parts.to_text(),
        # Files and Redis, where the visits go, take results in no time; the hours' destination lets the receiver wait.
        metrics.HELD.name: str(0.005 * look.time_s),
        queue_metrics.DELIVERING.name: "0",
        f"{metrics.HELD.name}/hours": str(0.95 * look.time_s),
        f"{queue_metrics.DELIVERING.name}/hours": "3",
        f"{metrics.LAG.name}/hours": "77",
        f"{queue_metrics.STALLED_SUBSCRIBERS.name}/hours": "2",
    }
    sender = {
        metrics.HELD.name: str(0.25 * look.time_s),
        f"{metrics.HELD.name}/clicks": str(0.125 * look.time_s),
        f"{queue_metrics.DECODING.name}/clicks": "12",
    }
    live = {
        **look.answers.live,
        "receiver": {**look.answers.live["receiver"], **own},
        "sender": {**look.answers.live["sender"], **sender},
    }
    return replace(look, answers=replace(look.answers, live=live, partitions=partitions))


def unmeasured(look: Look) -> Look:
    """The look, had all services been told BETTONG_MEASURES=off."""
    return replace(look, answers=without_measures(look.answers))


def _read(values: dict[str, Any]) -> Look:
    def by_partition(found: dict[str, Any]) -> dict[PartitionId, Any]:
        return {PartitionId.parse(name): value for name, value in found.items()}

    logs = Logs(by_partition(values["begins"]), by_partition(values["ends"]))
    partitions, slots = by_partition(values["partitions"]), by_partition(values["slots"])
    return Look(values["time_s"], DeploymentAnswers(values["live"], partitions, logs, slots))


def _written(look: Look) -> dict[str, Any]:
    def by_name(found: Any) -> dict[str, Any]:
        return {str(each): value for each, value in found.items()}

    answers, logs = look.answers, look.answers.logs
    if answers.silent or logs is None:
        raise SystemExit(f"not all answer: {answers.silent}")
    return {
        "time_s": look.time_s,
        "live": dict(answers.live),
        "partitions": by_name(answers.partitions),
        "begins": by_name(logs.begins),
        "ends": by_name(logs.ends),
        "slots": by_name(answers.slots),
    }


def _record(application: str, directory: Path, path: Path) -> None:
    name = loaded_plan(application).application
    where = found_locations(application, name, directory)
    looks = []
    with LiveDeployment(name, where.redis, where.kafka) as live:
        begun_s = time.monotonic()
        for number in range(_LOOKS):
            while time.monotonic() < begun_s + number:
                pass
            looks.append(_written(Look(round(time.time(), 3), live.answers())))
    path.write_text("[\n" + ",\n".join(json.dumps(each, sort_keys=True) for each in looks) + "\n]\n")


if __name__ == "__main__":
    _record(sys.argv[1], Path(sys.argv[2]), Path(sys.argv[3]))
