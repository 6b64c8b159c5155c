"""What services say of their queues, as people and scripts see it."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO

import pytest
from rich.console import Console

from bettong import metrics, queue_metrics
from bettong.cli.queue_texts import service_texts, show_queues
from bettong.cli.top.lines import partition_lines, service_lines
from bettong.cli.top.tables import PARTITIONS, SERVICES
from bettong.inspection.queues import CreditSummary, QueueKind, QueueLine, Queues
from bettong.inspection.slowest_part import slowest_part
from bettong.inspection.status_form import status_form
from bettong.inspection.watched import watched
from bettong.queued import NAMED_MAX, ClientCredits, SubscriberQueue, clients_text, subscribers_text
from tests.samples.deployments import Partitions, measured, moment, partition, services

CLIENTS = [ClientCredits("orders/feed-1", 0, 64, 12.5), ClientCredits("orders/feed-2", 60, 4, 0.0)]
SUBSCRIBERS = [SubscriberQueue("totals", "ipv4:10.0.0.7:5", 3.25, 900_000, 41)]
SENDER = {
    metrics.SESSIONS.name: 2,
    metrics.HELD.name: 1.5,
    f"{metrics.HELD.name}/orders": 0.25,
    f"{queue_metrics.DECODING.name}/orders": 12,
    queue_metrics.UNACKNOWLEDGED.name: 30,
    queue_metrics.CREDITS.name: 60,
    queue_metrics.CREDITS_LEAST.name: 0,
    queue_metrics.WITHOUT_CREDIT.name: 1,
    queue_metrics.WITHOUT_CREDIT_S.name: 12.5,
    queue_metrics.CLIENTS.name: clients_text(CLIENTS),
}
RECEIVER = {
    "lag": 0,
    "lag/totals": 500,
    "messages/totals": 10,
    metrics.HELD.name: 0.5,
    queue_metrics.DELIVERING.name: 0,
    f"{metrics.HELD.name}/totals": 100.0,
    f"{queue_metrics.DELIVERING.name}/totals": 7,
    f"{queue_metrics.STALLED_SUBSCRIBERS.name}/totals": 1,
    queue_metrics.SUBSCRIBERS.name: subscribers_text(SUBSCRIBERS),
}


def folded(*, held_s: float = 2.0) -> Partitions:
    found: Partitions = {}
    for number in range(2):
        found |= partition(
            "sum", number, offset=5, held_s=held_s, read_ahead=100 * number, unacknowledged=3, lag=0
        )
    return found


def found(receiver: dict[str, object] | None = None) -> Queues:
    live = services(sender=SENDER, receiver=RECEIVER if receiver is None else receiver)
    return moment(0, live, folded()).found.queues


def printed(shown: Queues, width: int = 120) -> str:
    text = StringIO()
    show_queues(shown, Console(file=text, width=width, highlight=False))
    return text.getvalue()


def test_queues_stand_in_the_order_in_which_messages_pass() -> None:
    assert found().lines == (
        QueueLine("sender", QueueKind.DECODING, "orders", 12, 0.25),
        QueueLine("sender", QueueKind.KAFKA, "", 30, 1.5),
        QueueLine("processor", QueueKind.WORKER, "sum", 100, None),
        QueueLine("processor", QueueKind.KAFKA, "sum", 6, 4.0),
        QueueLine("receiver", QueueKind.SINK, "", 0, 0.5),
        QueueLine("receiver", QueueKind.SINK, "totals", 7, 100.0),
    )
    assert found().credits == (CreditSummary("sender", 2, 60, 0, 1, 12.5),)
    assert found().clients == tuple(("sender", each) for each in CLIENTS)
    assert found().subscribers == (("receiver", SUBSCRIBERS[0]),)


@pytest.mark.parametrize("text", ["", "[7]", "no JSON", '[["totals", 5]]'])
def test_what_another_version_says_of_queues_is_passed_over(text: str) -> None:
    old = found({"lag": 0, queue_metrics.SUBSCRIBERS.name: text})
    assert old.subscribers == ()
    assert [line.service for line in old.lines] == ["sender", "sender", "processor", "processor"]
    assert moment(0, services(), {}).found.queues == Queues()


def test_of_several_senders_those_clients_are_named_that_have_least_credit() -> None:
    live = services(sender=SENDER)
    many = [ClientCredits(f"orders/more-{number:02}", number, 1, 0.0) for number in range(NAMED_MAX)]
    live["sender-2"] = {**live["sender"], queue_metrics.CLIENTS.name: clients_text(many)}
    named = moment(0, live, {}).found.queues.clients
    assert len(named) == NAMED_MAX
    assert named[:3] == (("sender", CLIENTS[0]), ("sender-2", many[0]), ("sender-2", many[1]))


def test_status_as_json_has_them() -> None:
    form = status_form(moment(0, services(sender=SENDER, receiver=RECEIVER), folded()).found, 0.0)
    assert form.queues[0].model_dump() == {
        "service": "sender",
        "waits_for": "decoding",
        "name": "orders",
        "waiting_frames": 12,
        "held_s": 0.25,
    }
    assert form.clients[0].model_dump() == {
        "sender": "sender",
        "stream": "orders/feed-1",
        "credits": 0,
        "frames_in_flight": 64,
        "without_credit_s": 12.5,
    }
    assert form.subscribers[0].model_dump() == {
        "receiver": "receiver",
        "sink": "totals",
        "address": "ipv4:10.0.0.7:5",
        "stalled_s": 3.25,
        "waiting_bytes": 900_000,
        "lag_records": 41,
    }
    own = form.partitions[1]
    assert (own.held_s, own.read_ahead_records, own.unacknowledged_frames) == (2.0, 100, 3)
    nothing = status_form(None, 0.0, "nothing runs")
    assert (nothing.queues, nothing.clients, nothing.subscribers) == ([], [], [])


def test_status_says_what_waits_and_who_has_it_worst() -> None:
    lines = [" ".join(line.split()) for line in printed(found()).splitlines()]
    for expected in (
        "to be decoded sender orders 12 0.2 s",
        "for Kafka sender 30 1.5 s",
        "for workers processor sum 100",
        "for a sink receiver files and Redis 0 0.5 s",
        "for a sink receiver totals 7 100.0 s",
        "sender: 2 clients with 60 credits together, 0 at least; 1 without, for 12.5 s at most",
        "orders/feed-1 sender 0 64 12.5 s",
        "orders/feed-2 sender 60 4",
        "ipv4:10.0.0.7:5 receiver totals 3.2 s 900,000 41",
    ):
        assert expected in lines
    assert printed(Queues()) == "no service reports its queues\n"


def test_top_says_of_a_service_and_of_a_partition_what_waits_in_it() -> None:
    now = moment(0, services(sender=SENDER, receiver=RECEIVER), folded())
    seen = watched(None, now.found, at_s=0.0, unix_s=0.0)
    details = {line.row.name: SERVICES.detail(line) for line in service_lines(seen, 0.0)}
    assert details["sender"][1:] == [
        "frames that wait: 12 to be decoded (orders), 30 for Kafka",
        "has held up since it began: 1.5 s for Kafka",
        "sender: 2 clients with 60 credits together, 0 at least; 1 without, for 12.5 s at most",
    ]
    assert details["receiver"][1:] == [
        "frames that wait: 7 for a sink (totals)",
        "has held up since it began: 100.0 s for a sink (totals)",
    ]
    assert PARTITIONS.detail(partition_lines(seen, 0.0)[1])[3] == (
        "frames read ahead: 100; output that Kafka has not acknowledged: 3"
    )
    idle = services(sender={f"{queue_metrics.DECODING.name}/orders": 0, queue_metrics.CREDITS.name: 0})
    assert list(service_texts(moment(0, idle, {}).found.queues, "sender")) == [
        "frames that wait: none",
        "sender: no clients",
    ]


def test_a_sink_that_lets_its_receiver_wait_is_back_pressure_and_the_slowest_part() -> None:
    def at(time_s: float, held_s: float) -> dict[str, dict[str, str]]:
        return services(
            sender=SENDER | {f"{metrics.HELD.name}/orders": 0.5 * time_s},
            receiver=RECEIVER | {f"{metrics.HELD.name}/totals": held_s, "messages/plain": 1},
        )

    before = moment(0, at(0, 100.0), folded())
    now = measured(before, moment(4, at(4, 103.8), folded()))
    plain, totals = now.sinks
    assert totals.held_share == pytest.approx(0.95)
    assert (totals.delivering, totals.subscribers_stalled) == (7, 1)
    assert (plain.held_share, plain.delivering) == (0.0, 0), "files and Redis have it"
    (source,) = now.sources
    assert (source.held_share, source.decoding) == (0.5, 12)
    slowest = slowest_part(now)
    assert slowest is not None
    assert (slowest.kind, slowest.name) == ("sink", "totals")
    assert slowest.why == "its receiver waits for it 95% of the time; 500 records wait for it"
    quick = slowest_part(measured(before, moment(4, at(4, 100.4), folded())))
    assert quick is None
    assert slowest_part(replace(now, sinks=())) is None
