"""Queues and back-pressure: from the live records of services and the rows of partitions. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import TypeVar

from bettong import metrics, queue_metrics
from bettong.inspection.overview import PartitionRow, Record, number_of, service_of
from bettong.queued import (
    NAMED_MAX,
    ClientCredits,
    SubscriberQueue,
    clients_first,
    clients_in,
    subscribers_first,
    subscribers_in,
)
from bettong.services import PROCESSOR, RECEIVER, SENDER

_Named = TypeVar("_Named")


class QueueKind(StrEnum):
    """What a queue's frames wait for, in the order in which messages pass."""

    DECODING = "decoding"
    KAFKA = "Kafka"
    WORKER = "worker"
    SINK = "sink"


@dataclass(frozen=True, slots=True)
class QueueLine:
    """One queue. `service`: the instance that has it; `processor` for a stage's workers.

    `name`: of the source, stage or sink; "" for all sources, and for files and Redis. `waiting`: frames; None while
    unknown. `held_s`: for how long it has held up its producers, since the instance began.
    """

    service: str
    kind: QueueKind
    name: str
    waiting: int | None
    held_s: float | None


@dataclass(frozen=True, slots=True)
class CreditSummary:
    """The clients of a sender: how many are without credit, and the longest time that one has waited."""

    service: str
    clients: int
    credits: int
    least: int | None
    without: int
    waited_s: float


@dataclass(frozen=True, slots=True)
class Queues:
    """All queues. `clients` and `subscribers`, by instance: the slowest ones of all, `NAMED_MAX` at most."""

    lines: tuple[QueueLine, ...] = ()
    credits: tuple[CreditSummary, ...] = ()
    clients: tuple[tuple[str, ClientCredits], ...] = ()
    subscribers: tuple[tuple[str, SubscriberQueue], ...] = ()


def queues(live: Mapping[str, Record], rows: Iterable[PartitionRow]) -> Queues:
    """The queues of all services, senders first."""
    senders = [(name, each) for name, each in sorted(live.items()) if service_of(each) == SENDER.name]
    receivers = [(name, each) for name, each in sorted(live.items()) if service_of(each) == RECEIVER.name]
    return Queues(
        lines=(
            *(line for sender in senders for line in _of_sender(*sender)),
            *_of_stages(rows),
            *(line for receiver in receivers for line in _of_receiver(*receiver)),
        ),
        credits=tuple(_credits(*sender) for sender in senders if queue_metrics.CREDITS.name in sender[1]),
        clients=_worst(senders, queue_metrics.CLIENTS.name, clients_in, clients_first),
        subscribers=_worst(receivers, queue_metrics.SUBSCRIBERS.name, subscribers_in, subscribers_first),
    )


def _of_sender(name: str, record: Record) -> Iterator[QueueLine]:
    for source in _suffixes(record, queue_metrics.DECODING.name):
        yield _line(name, record, QueueKind.DECODING, source, queue_metrics.DECODING.name)
    if queue_metrics.UNACKNOWLEDGED.name in record:
        yield _line(name, record, QueueKind.KAFKA, "", queue_metrics.UNACKNOWLEDGED.name)


def _of_receiver(name: str, record: Record) -> Iterator[QueueLine]:
    if queue_metrics.DELIVERING.name in record:
        yield _line(name, record, QueueKind.SINK, "", queue_metrics.DELIVERING.name)
    for sink in _suffixes(record, queue_metrics.DELIVERING.name):
        yield _line(name, record, QueueKind.SINK, sink, queue_metrics.DELIVERING.name)


def _line(service: str, record: Record, kind: QueueKind, name: str, metric: str) -> QueueLine:
    suffix = f"/{name}" if name else ""
    waiting = number_of(record, metric + suffix)
    held_s = number_of(record, metrics.HELD.name + suffix)
    return QueueLine(service, kind, name, None if waiting is None else int(waiting), held_s)


def _of_stages(rows: Iterable[PartitionRow]) -> Iterator[QueueLine]:
    stages: dict[str, list[PartitionRow]] = {}
    for row in rows:
        stages.setdefault(row.stage, []).append(row)
    for stage, own in stages.items():
        if any(row.unacknowledged is not None for row in own):
            ahead, unacknowledged = (
                _sum(row.read_ahead for row in own),
                _sum(row.unacknowledged for row in own),
            )
            yield QueueLine(PROCESSOR.name, QueueKind.WORKER, stage, ahead, None)
            held_s = sum(row.held_s or 0.0 for row in own)
            yield QueueLine(PROCESSOR.name, QueueKind.KAFKA, stage, unacknowledged, held_s)


def _sum(found: Iterable[int | None]) -> int | None:
    known = [each for each in found if each is not None]
    return sum(known) if known else None


def _suffixes(record: Record, metric: str) -> list[str]:
    """The names that follow a metric's name, after the slash."""
    return sorted(name.partition("/")[2] for name in record if name.startswith(f"{metric}/"))


def _credits(name: str, record: Record) -> CreditSummary:
    def count(metric: str) -> int:
        return int(number_of(record, metric) or 0)

    least = number_of(record, queue_metrics.CREDITS_LEAST.name)
    return CreditSummary(
        name,
        count(metrics.SESSIONS.name),
        count(queue_metrics.CREDITS.name),
        None if least is None else int(least),
        count(queue_metrics.WITHOUT_CREDIT.name),
        number_of(record, queue_metrics.WITHOUT_CREDIT_S.name) or 0.0,
    )


def _worst(
    records: Iterable[tuple[str, Record]],
    metric: str,
    read: Callable[[str], list[_Named]],
    first: Callable[[_Named], tuple[object, ...]],
) -> tuple[tuple[str, _Named], ...]:
    found = [(name, each) for name, record in records for each in _read(record.get(metric, ""), read)]
    return tuple(sorted(found, key=lambda each: first(each[1])))[:NAMED_MAX]


def _read(text: str, read: Callable[[str], list[_Named]]) -> list[_Named]:
    """Nothing where there is none, or what another version of Bettong wrote."""
    try:
        return read(text or "[]")
    except ValueError:
        return []
