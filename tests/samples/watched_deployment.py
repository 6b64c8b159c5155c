"""What the services of an application said in a minute, as Redis and Kafka gave it, and a watch that gives it again."""

import json
import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from bettong.event_progress import DueComputation, DueKind, EventProgress, InputProgress
from bettong.frames.dead_letter_id import DeadLetterId
from bettong.hot_keys import HotKey, HotKeys
from bettong.identifiers import Origin, PartitionId
from bettong.inspection.dead_letters import Found
from bettong.inspection.deployment import DeploymentAnswers, Inspection, Logs, inspection
from bettong.inspection.reason_counts import ReasonCounts, counted
from bettong.inspection.services import ProcessFacts, local_rows
from bettong.inspection.watched import Watched, watched
from bettong.latency_parts import PartsOfLate
from bettong.v1.frame_pb2 import DeadLetter
from bettong.worker.balance import AccountKind, AccountRow, PartitionAccounts, RowCounts

HELD_BACK_S = 12  # from then on a partition waits for one of the stage before
BEGUN_S = 1_800_000_000.0  # 15 January 2027, 08:00:00 UTC
PARTITIONS = 4
# Of sink `spread`: 2.5 ms in the mean, most of them in the log before the workers.
PARTS_OF_LATE = PartsOfLate(336_000, [100.8, 420.0, 33.6, 268.8, 16.8], [1.1, 5.2, 0.4, 3.1, 0.2])
_A_SECOND = 3000  # messages of each partition
_FACTS = ProcessFacts(pid=4100, started_s=BEGUN_S - 7300, restarts=0, runs=True, log="logs/x.log")
# What `bettong.worker.stopwatch` says of the one computation of each stage.
_TIMES = {
    "orders": {"price": [9000.25, 0.2, 610.0, 1900.0, 2400.0, 2600.0, 3100.0]},
    "spreads": {"spread": [4000.5, 0.09, 350.0, 1100.0, 1500.0, 1500.0, 1700.0]},
}


def _wave(second: int) -> int:
    """More and less than usual, by 8,000 messages/s at most."""
    return round(64_000 * (1 - math.cos(second / 8)))


def live(second: int) -> dict[str, dict[str, str]]:
    """The records of services."""
    since = str(BEGUN_S - 7200)
    return {
        "sender": {
            "service": "sender",
            "state": "running",
            "since": since,
            "messages": str(90_000_000 + second * PARTITIONS * _A_SECOND + _wave(second)),
        },
        "processor": {"service": "processor", "state": "running", "since": since, "lag": "5"},
        "receiver": {
            "service": "receiver",
            "state": "running",
            "since": since,
            "messages": str(44_000_000 + second * PARTITIONS * 1400),
            "lag": "0",
            "latency_p50_ms": "2.14",
            "latency_p99_ms": "8.62",
            "latency_parts/spread": PARTS_OF_LATE.to_text(),
            "dead_letters": str(3 + second // 20),
            "dead_letter_last": "check: ValueError: no price (orders/feed-7, frame 81, message 3)",
        },
    }


def partition(stage: str, number: int, second: int) -> dict[str, str]:
    """The record of a partition."""
    at_ns = int((BEGUN_S + second) * 1e9)
    is_held_back = PartitionId(stage, number) == ("spreads", 2) and second >= HELD_BACK_S
    behind_s = 1 + (second - HELD_BACK_S if is_held_back else 0)
    return {
        "offset": str(120_000 + number * 111 + second * 20),
        "snapshot_offset": str(120_000 + number * 111 + second // 4 * 80 - 20),
        "snapshot_saved": f"{BEGUN_S + second // 4 * 4:.3f}",
        "snapshot_bytes": str(61_000 + 900 * number),
        "snapshot_ms": "7.25",
        "snapshot_pause_ms": "1.5",
        "state_bytes": str(640_000 + 9_000 * number),
        "messages": str(22_000_000 + number * 700 + second * (_A_SECOND + 37 * number)),
        "results": str(11_000_000 + second * 1400),
        "dead_letters": "3" if number == 1 and stage == "orders" else "0",
        "late": "12" if stage == "spreads" else "0",
        "keys": str(1800 + 13 * number),
        "messages_per_s": str(_A_SECOND),
        "hot_keys": HotKeys(65_536, (HotKey(f"SYM{number}", 0.22, 0.2),)).to_text(),
        "latency_p50_ms": f"{1.7 + number / 10:.2f}",
        "latency_p99_ms": f"{6.1 + number / 3:.2f}",
        "watermark_ns": str(at_ns - behind_s * 10**9) if stage == "spreads" else "0",
        "watermark_held_by": f"spreads/orders/{3 if is_held_back else number}" if stage == "spreads" else "",
        "event_progress": _event_progress(at_ns, behind_s, number) if stage == "spreads" else "",
        "accounts": _accounts(stage, 22_000_000 + second * _A_SECOND),
        "times": json.dumps({"": [900.5, 0.02, 90.0, 140.0, 150.0, 150.0, 160.0], **_TIMES[stage]}),
    }


def _event_progress(at_ns: int, behind_s: int, number: int) -> str:
    """A minute is open; of the partition that is held back since it is."""
    is_held_back = behind_s > 1
    reached_ns, minute_ns = at_ns - behind_s * 10**9, 60 * 10**9
    moved_ns = int((BEGUN_S + HELD_BACK_S) * 1e9) if is_held_back else at_ns
    origin = f"spreads/orders/{3 if is_held_back else number}"
    own = InputProgress("spreads/orders", PARTITIONS, 0, Origin(origin), reached_ns, moved_ns, moved_ns, None)
    start_ns = reached_ns // minute_ns * minute_ns
    end_ns = start_ns + minute_ns
    due = DueComputation("spread", DueKind.WINDOW, end_ns, start_ns, end_ns)
    return EventProgress(at_ns, (own,), (due,)).to_text()


def _accounts(stage: str, taken: int) -> str:
    """Every message passes one computation, and leaves."""
    name = next(iter(_TIMES[stage]))
    counts = RowCounts(taken=taken, given=taken)
    rows = (
        AccountRow(AccountKind.INPUT, stage, (), "", counts),
        AccountRow(AccountKind.EACH, name, (stage,), "", counts),
        AccountRow(AccountKind.OUTPUT, f"{name}s", (name,), "", counts),
    )
    return PartitionAccounts(1, rows).text()


def answers(second: int) -> DeploymentAnswers:
    """All of them, of that second: two stages; a partition of the second one is behind."""
    ids = [PartitionId(stage, number) for stage in ("orders", "spreads") for number in range(PARTITIONS)]
    records = {id_: partition(*id_, second) for id_ in ids}
    held_back = PartitionId("spreads", 2)
    waiting = {id_: 62 * max(0, second - HELD_BACK_S) if id_ == held_back else 0 for id_ in ids}
    ends = {id_: int(record["offset"]) + waiting[id_] for id_, record in records.items()}
    slots = {id_: number % 2 for number, id_ in enumerate(ids)}
    return DeploymentAnswers(live(second), records, Logs(dict.fromkeys(ids, 0), ends), slots)


def without_measures(found: DeploymentAnswers) -> DeploymentAnswers:
    """The same with BETTONG_MEASURES=off."""
    live = {
        name: {key: text for key, text in record.items() if not key.startswith("latency_part")}
        for name, record in found.live.items()
    }
    partitions = {id_: {**record, "times": "", "hot_keys": ""} for id_, record in found.partitions.items()}
    return replace(found, live=live, partitions=partitions)


def inspected(found: DeploymentAnswers, processes: Mapping[str, ProcessFacts] | None = None) -> Inspection:
    """Of a suite on this machine."""
    names = ("kafka", "processor", "receiver", "redis", "sender")
    facts = processes if processes is not None else dict.fromkeys(names, _FACTS)
    return inspection("market-spread", local_rows(found.live, facts, found.silent), found)


def watched_for(
    seconds: int, change: Callable[[int, DeploymentAnswers], DeploymentAnswers] = lambda _, found: found
) -> Watched:
    """Looked at once a second for so long; `change`: what is otherwise in a second."""
    found: Watched | None = None
    for second in range(seconds):
        answer = inspected(change(second, answers(second)))
        found = watched(found, answer, at_s=float(second), unix_s=BEGUN_S + second)
    assert found is not None
    return found


def dead_letters(reasons: Mapping[tuple[str, str], int]) -> ReasonCounts:
    """So many of each computation and reason."""
    found = (
        Found(
            DeadLetterId(0, number, index),
            int((BEGUN_S - 60 * number) * 1e9),
            DeadLetter(computation=computation, reason=reason, origin="orders/feed-7"),
        )
        for number, ((computation, reason), count) in enumerate(reasons.items())
        for index in range(count)
    )
    return counted(ReasonCounts(), found)


@dataclass(slots=True)
class RecordedWatch:
    """A `DeploymentWatch` that gives these inspections, one after the other, and the last one again and again."""

    inspections: list[Inspection]
    counts: ReasonCounts | None = None
    asked: int = 0
    is_closed: bool = False
    faults: list[Exception] = field(default_factory=list)

    def inspect(self) -> Inspection:
        self.asked += 1
        if self.faults:
            raise self.faults.pop(0)
        return self.inspections.pop(0) if len(self.inspections) > 1 else self.inspections[0]

    def reasons(self, seconds: float) -> ReasonCounts | None:
        assert seconds < 1, "the screen waits for it"
        return self.counts

    def close(self) -> None:
        self.is_closed = True
