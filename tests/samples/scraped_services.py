"""Services as Prometheus finds them: their real endpoints, over records of each that stand in a real Redis.

Nothing but the records is made up, so names, labels and buckets are those of the code.
"""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass

import structlog

from bettong import metrics
from bettong.edges.metrics_endpoint import Identity, MetricsEndpoint
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.edges.redis_store.live import MetricValues
from bettong.identifiers import PartitionId
from bettong.latency import BOUNDS_S, LatencyCounts
from bettong.local.addresses import LOOPBACK, free_ports
from bettong.worker.balance import AccountKind, AccountRow, PartitionAccounts, RowCounts

SERVICES = ("sender", "processor", "receiver")
_STAGE = "orders"
_PARTITIONS = 2
_TTL_S = 600.0
_NS = 1_000_000_000
_BEGAN_S = 1_700_000_000


@dataclass(frozen=True)
class ScrapedServices:
    """`addresses`: of the endpoints, by service. The application is called `application` in Redis."""

    addresses: dict[str, str]
    stores: dict[str, LiveMetrics]

    def report(self, step: int) -> None:
        """Each service and partition writes its record; from step to step all that counts has gone on."""
        for service, live in self.stores.items():
            live.write_live(f"{service}-1", _record(service, step), _TTL_S)
        for number in range(_PARTITIONS):
            self.stores["processor"].write_partition(PartitionId(_STAGE, number), _partition(step))


@contextmanager
def scraped_services(redis_url: str, application: str) -> Iterator[ScrapedServices]:
    """A sender, a processor with the partitions of a stage, and a receiver, which serve their metrics."""
    addresses = {service: f"{LOOPBACK}:{port}" for service, port in zip(SERVICES, free_ports(3), strict=True)}
    with ExitStack() as stack:
        stores = {}
        for service, address in addresses.items():
            live = LiveMetrics(stack.enter_context(RedisStore(redis_url, application)))
            identity = Identity(service, application, f"{service}-1")
            stack.enter_context(MetricsEndpoint(address, identity, live, structlog.get_logger()))
            stores[service] = live
        yield ScrapedServices(addresses, stores)


def _record(service: str, step: int) -> MetricValues:
    found: dict[str, str | int | float] = {
        metrics.SERVICE.name: service,
        metrics.STATE.name: "running",
        metrics.SINCE.name: _BEGAN_S,
    }
    counted: dict[str, dict[str, str | int | float]] = {
        "sender": {
            "messages": 1500 * step,
            "frames": 15 * step,
            "sessions": 3,
            "refused": 1,
            "buffered": 4096,
            "dead_letters": 7,
            "skipped": 8,
            "ticks": 2 * step,
            "lag/trades": 7,
            "watermark_lag_s/orders": 2.5,
            "certificate_end": _BEGAN_S + 86_400 * 90,
            "dropped_spans": 4,
        },
        "processor": {
            "lag": 12,
            "batch": step,
            "batch_ms": 160.0,
            "reference_age_s/prices": 600.0,
            **{f"lag/{_STAGE}/{number}": 6 for number in range(_PARTITIONS)},
            **{f"stalled_s/{_STAGE}/{number}": 4 for number in range(_PARTITIONS)},
        },
        "receiver": {
            "messages": 1400 * step,
            "messages/totals": 1400 * step,
            "frames": 14 * step,
            "dead_letters": 7,
            "skipped": 1,
            "duplicates": 2,
            "gaps": 1,
            "unreadable": 0,
            "sessions": 2,
            "lag": 5,
            "lag/totals": 5,
            "certificate_end": _BEGAN_S + 86_400 * 90,
            "dropped_spans": 4,
            "latency": _latencies(1400 * step),
            "latency/totals": _latencies(1400 * step),
        },
    }
    return found | counted[service] | _queues(step)[service]


def _queues(step: int) -> dict[str, dict[str, str | int | float]]:
    return {
        "sender": {
            "held_s": 0.2 * step,
            "held_s/orders": 0.1 * step,
            "decoding/orders": 2,
            "decoding_bytes/orders": 8192,
            "unacknowledged": 4,
            "credits": 180,
            "credits_least": 0,
            "without_credit": 1,
            "without_credit_s": 0.5,
        },
        "processor": {},
        "receiver": {
            "held_s": 0.5 * step,
            "held_s/totals": 3.0 * step,
            "delivering": 0,
            "delivering/totals": 7,
            "stalled_subscribers/totals": 0,
            "subscriber_stalled_s/totals": 0.0,
            "subscriber_bytes/totals": 1_000_000,
            "subscriber_lag/totals": 3,
        },
    }


def _partition(step: int) -> MetricValues:
    return {
        "offset": 10 * step,
        "snapshot_offset": 10 * step - 5,
        "frames": 10 * step,
        "messages": 750 * step,
        "results": 700 * step,
        "dead_letters": 3,
        "skipped": 1,
        "duplicates": 2,
        "gaps": 1,
        "keys": 40,
        "deleted": 5,
        "expired": 6,
        "late": step,
        "partly_late": 1,
        "due_ns": _BEGAN_S * _NS,
        "watermark_ns": (_BEGAN_S + step) * _NS,
        "messages_per_s": 750.0,
        "held_s": 0.1 * step,
        "read_ahead": 4,
        "unacknowledged": 2,
        "cpus": 2,
        "exclusive": 1,
        "latency": _latencies(10 * step),
        "accounts": _accounts(750 * step).text(),
        # A gap is told of when it is as old as that.
        "gap": "orders/feed-3, frame 9: frame 8 did not come before it",
        metrics.GAP_ALARM_S: 0,
    }


def _accounts(count: int) -> PartitionAccounts:
    """All that came to the stage was used, and put out."""
    counts = RowCounts(taken=count, given=count)
    return PartitionAccounts(
        0,
        (
            AccountRow(AccountKind.INPUT, "orders", (), "", counts),
            AccountRow(AccountKind.EACH, "total", ("orders",), "", counts),
            AccountRow(AccountKind.OUTPUT, "totals", ("total",), "", counts),
        ),
    )


def _latencies(count: int) -> str:
    """All of 5 to 10 ms."""
    counts = [count if bound == 0.01 else 0 for bound in (*BOUNDS_S, float("inf"))]
    return LatencyCounts(counts, 0.008 * count).to_text()
