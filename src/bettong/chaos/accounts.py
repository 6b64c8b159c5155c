"""Whether the accounts of a run add up when it has caught up, and equal those of the undisturbed run."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bettong import metrics
from bettong.application.plan import Plan
from bettong.edges.kafka_log import LogAdmin
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import LogError, StoreError
from bettong.identifiers import PartitionId
from bettong.local.record import SuiteRecord
from bettong.topics import stage_topic
from bettong.worker.balance import AccountKind, Balance, PartitionAccounts, balance, differences

_POLL_S = 0.5
_ANSWER_S_MAX = 5.0
# Partitions that fold report within a second, and after a wiped Redis again within five; an idle one under micro-batch
# does not, so its accounts stay unknown.
_SETTLES_S_MAX = 30.0


@dataclass(frozen=True, slots=True)
class FinalAccounts:
    """`unknown`: why they are unknown; "" where they are known, and then nothing is in transit."""

    found: tuple[Balance, ...] = ()
    unknown: str = ""


def final_accounts(plan: Plan, record: SuiteRecord, wait: Callable[[float], object]) -> FinalAccounts:
    """Waits until each partition has reported that it has folded its log; longer where the accounts do not add up, as
    output may not be in the next stage's log yet. `wait` takes seconds.
    """
    end_s = time.monotonic() + _SETTLES_S_MAX
    while True:
        now = _accounts(plan, record)
        if (not now.unknown and not differences(now.found)) or time.monotonic() >= end_s:
            return now
        wait(_POLL_S)


def broken_accounts(found: FinalAccounts, straight: FinalAccounts | None) -> list[str]:
    """Counts that do not add up, or differ from the undisturbed run, if there was one; in a line each."""
    wrong = [f"accounts: {line}" for line in differences(found.found)]
    if straight is None or straight.unknown or found.unknown:
        return wrong
    wrong += [f"accounts of the undisturbed run: {line}" for line in differences(straight.found)]
    expected = _comparable(straight.found)
    for (stage, kind, name), counts in _comparable(found.found).items():
        if counts != (should := expected.get((stage, kind, name))):
            of = f"{kind} {name}" if kind in (AccountKind.INPUT, AccountKind.OUTPUT) else name
            wrong.append(f"accounts: {stage}, {of}: {counts}, not {should} as in the undisturbed run")
    return wrong


def _comparable(found: Sequence[Balance]) -> Mapping[tuple[str, AccountKind, str], Mapping[str, int]]:
    """The counts that must not differ. Whether a message or time caused a result may, and how much `local` combines."""
    if any(each.kind is AccountKind.LOCAL for each in found):
        return {}
    return {
        (each.stage, each.kind, each.name): {
            name: count
            for name, count in each.counts._asdict().items()
            if count and name not in ("given_by_time", "before")
        }
        for each in found
    }


def _accounts(plan: Plan, record: SuiteRecord) -> FinalAccounts:
    """The accounts as partitions report them now."""
    stages = {stage_topic(plan.application, stage.name): stage.name for stage in plan.stages}
    try:
        with (
            LogAdmin(record.kafka_connection) as admin,
            RedisStore(record.redis_connection, plan.application) as store,
        ):
            reported = LiveMetrics(store).partitions(attempts_s=_ANSWER_S_MAX)
            ends = admin.ends(stages)
    except (LogError, StoreError) as error:
        return FinalAccounts(unknown=str(error))
    accounts: dict[PartitionId, PartitionAccounts] = {}
    for (topic, partition), end in ends.items():
        id_ = PartitionId(stages[topic], partition)
        record_ = reported.get(id_, {})
        if int(record_.get(metrics.OFFSET.name) or 0) < end:
            return FinalAccounts(unknown=f"{id_} has not reported that it is at the end of its log, {end}")
        if text := record_.get(metrics.ACCOUNTS.name):
            accounts[id_] = PartitionAccounts.of_text(text)
    return FinalAccounts(tuple(balance(accounts, is_at_rest=True)))
