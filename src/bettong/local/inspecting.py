"""What is known of a suite on this machine: its processes, and what they say."""

from __future__ import annotations

from bettong.inspection.deployment import Inspection, inspection
from bettong.inspection.live.deployment import ask
from bettong.inspection.services import ProcessFacts, local_rows
from bettong.local.record import SuiteRecord


def inspect_suite(record: SuiteRecord) -> Inspection:
    """A suite on this machine. Raises nothing for a Kafka or a Redis that is away."""
    answers = ask(record.name, record.redis_connection, record.kafka_connection, redis_may_be_away=True)
    return inspection(record.name, local_rows(answers.live, processes_of(record), answers.silent), answers)


def processes_of(record: SuiteRecord) -> dict[str, ProcessFacts]:
    """The processes of a suite, looked at now."""
    return {
        name: ProcessFacts(
            each.pid,
            each.started_s,
            each.restarts,
            each.runs(),
            str(each.log),
            fault=each.fault,
            final_status=each.final_status,
        )
        for name, each in record.services.items()
    }
