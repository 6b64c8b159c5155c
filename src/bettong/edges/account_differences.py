"""Counts differences in the accounts of each stage, for the metrics endpoint of a processor.

The records of partitions are not a consistent snapshot, and the ends of the logs are unknown here. So messages that one
stage has sent and the next has not received count as missing only at rest: the processor's lag is 0, and no partition
has processed anything for `REST_S`. `bettong status` and the console, which ask Kafka, report it sooner.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping

from bettong.edges.redis_store.live import MetricValues
from bettong.identifiers import PartitionId
from bettong.metrics import ACCOUNTS, LAG, OFFSET
from bettong.worker.balance import PartitionAccounts, balance

# Ten times the age that live records and their lag may have, so that both were measured at rest.
REST_S = 5.0

Partitions = Mapping[PartitionId, MetricValues]


class AccountWatch:
    """Tracks since when no offset has moved."""

    def __init__(self, clock_s: Callable[[], float] = time.monotonic) -> None:
        self._clock_s = clock_s
        self._offsets: dict[PartitionId, str] = {}
        self._still_since_s = clock_s()

    def differences(self, record: MetricValues, partitions: Partitions) -> dict[str, int]:
        """The number of differences by stage, of stages that keep accounts; ignores records of other versions."""
        offsets = {id_: str(values.get(OFFSET.name, "")) for id_, values in partitions.items()}
        now_s = self._clock_s()
        if offsets != self._offsets:
            self._offsets, self._still_since_s = offsets, now_s
        is_at_rest = str(record.get(LAG.name, "")) == "0" and now_s - self._still_since_s >= REST_S
        accounts = {id_: found for id_, values in partitions.items() if (found := _accounts_in(values))}
        is_partial = any(offset not in {"", "0"} for id_, offset in offsets.items() if id_ not in accounts)
        counts = {id_.stage: 0 for id_ in accounts}
        try:
            for each in balance(accounts, is_at_rest=is_at_rest, is_partial=is_partial):
                counts[each.stage] += len(each.differences)
        except KeyError:  # accounts that refer to missing ones
            return {}
        return counts


def _accounts_in(values: MetricValues) -> PartitionAccounts | None:
    try:
        return PartitionAccounts.of_text(str(values.get(ACCOUNTS.name, "")))
    except ValueError:
        return None
