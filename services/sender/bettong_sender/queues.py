"""Metrics of a sender's queues, computed when they are read: no frame costs anything for them."""

from bettong import metrics, queue_metrics
from bettong.queued import ClientCredits, clients_text
from bettong_sender.intake import Intake


def queue_values(intake: Intake) -> dict[str, str | int | float]:
    """Clients' credits, frames that wait to be decoded, frames that wait for Kafka. From any thread."""
    return {
        metrics.BUFFERED.name: intake.buffer.bytes,
        metrics.HELD.name: round(intake.buffer.full.total_s, 3),
        queue_metrics.UNACKNOWLEDGED.name: intake.progress.pending,
        **_of_sources(intake),
        **_of_clients(intake),
    }


def _of_sources(intake: Intake) -> dict[str, int | float]:
    found: dict[str, int | float] = {}
    for source, splitter in intake.splitters.items():
        found[f"{metrics.HELD.name}/{source}"] = round(splitter.waiting.full.total_s, 3)
        found[f"{queue_metrics.DECODING.name}/{source}"] = splitter.frames_waiting
        found[f"{queue_metrics.DECODING_BYTES.name}/{source}"] = splitter.waiting.bytes
    return found


def _of_clients(intake: Intake) -> dict[str, str | int | float]:
    found = [
        ClientCredits(
            feed.origin,
            feed.ledger.credits,
            feed.ledger.in_flight,
            round(feed.ledger.without_credit.now_s, 3),
        )
        for feed in list(intake.clients)
        if not feed.is_finished  # it needs no credits
    ]
    waited_s = [each.waited_s for each in found if not each.credits]
    return {
        queue_metrics.CREDITS.name: sum(each.credits for each in found),
        queue_metrics.CREDITS_LEAST.name: min((each.credits for each in found), default=""),
        queue_metrics.WITHOUT_CREDIT.name: len(waited_s),
        queue_metrics.WITHOUT_CREDIT_S.name: max(waited_s, default=0.0),
        queue_metrics.CLIENTS.name: clients_text(found),
    }
