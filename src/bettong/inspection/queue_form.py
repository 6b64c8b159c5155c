"""Queues in the form of `bettong status --json`: see `status_form`. Pure."""

from __future__ import annotations

from bettong.inspection.described_form import Described, unit_field
from bettong.inspection.queues import QueueKind, QueueLine
from bettong.queued import ClientCredits, SubscriberQueue


class QueueStatus(Described):
    """One queue, and for how long it has held up its producers."""

    service: str = unit_field("name", "The instance that has it; processor, for all workers of a stage.")
    waits_for: str = unit_field("word", f"What its frames wait for: {', '.join(QueueKind)}.")
    name: str = unit_field(
        "name", "Of the source, the stage, the sink; empty for all of a sender, and for files and Redis."
    )
    waiting_frames: int | None = unit_field("frames", "In it now; null while unknown.")
    held_s: float | None = unit_field(
        "s",
        "Back-pressure: for how long it has held up its producers, since the instance began. For a rate ask twice."
        " Null for workers, which hold up nobody: there `lag_records` waits in the log.",
    )


class ClientStatus(Described):
    """A client of a sender, one of those with least credit."""

    sender: str = unit_field("name", "The instance.")
    stream: str = unit_field("name", "Of the client, with its source.")
    credits: int = unit_field("frames", "That it may send now.")
    frames_in_flight: int = unit_field("frames", "That it has sent and that are not acknowledged.")
    without_credit_s: float = unit_field("s", "For how long it has had none; 0 while it has some.")


class SubscriberStatus(Described):
    """A subscriber, one of those that have stalled for longest, or are furthest behind."""

    receiver: str = unit_field("name", "The instance.")
    sink: str = unit_field("name", "That it reads.")
    address: str = unit_field("address", "Where it is.")
    stalled_s: float = unit_field("s", "For how long it has not read what was sent to it; 0 while it reads.")
    waiting_bytes: int = unit_field("bytes", "That were sent to it and it has not read.")
    lag_records: int | None = unit_field("records", "In the log, not yet sent to it; null while unknown.")


def queue_status(line: QueueLine) -> QueueStatus:
    """A queue in this form."""
    return QueueStatus(
        service=line.service,
        waits_for=line.kind,
        name=line.name,
        waiting_frames=line.waiting,
        held_s=line.held_s,
    )


def client_status(sender: str, found: ClientCredits) -> ClientStatus:
    """A client in this form."""
    return ClientStatus(
        sender=sender,
        stream=found.stream,
        credits=found.credits,
        frames_in_flight=found.in_flight,
        without_credit_s=found.waited_s,
    )


def subscriber_status(receiver: str, found: SubscriberQueue) -> SubscriberStatus:
    """A subscriber in this form."""
    return SubscriberStatus(
        receiver=receiver,
        sink=found.sink,
        address=found.address,
        stalled_s=found.stalled_s,
        waiting_bytes=found.waiting_bytes,
        lag_records=found.lag,
    )
