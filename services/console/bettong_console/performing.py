"""Makes requested changes, in a separate process: sends dead letters again, scales workers, resets states.

With `dry_run`, each only reports what it would do. Its answer has `texts` for people, and `fault`, the reason why it
was not completed.
"""

from __future__ import annotations

import time
from typing import Any

from bettong.application.plan import Plan
from bettong.errors import BettongError, ClientError
from bettong.inspection.dead_letters import matching
from bettong.inspection.live.dead_letters import DeadLetterLog
from bettong.inspection.live.resending import Resending
from bettong.inspection.live.states import States
from bettong.inspection.states import reset_text
from bettong.local.locations import FoundLocations
from bettong_console.errors import ConsoleRequestError
from bettong_console.question import ResetQuestion, RetryQuestion, ScaleQuestion

# Each takes two sessions with the sender, some tens of ms. The next call does what is left when time is nearly over.
_RETRIES_MAX = 1_000
_RETRY_S_MAX = 45.0


def retried(question: RetryQuestion, planned: Plan, where: FoundLocations) -> dict[str, Any]:
    """As `bettong dead-letters retry`. Raises LogError, and BettongError for an id of none, while none was sent."""
    if where.sender is None and not question.dry_run:
        raise ConsoleRequestError(
            422,
            "the sender's address is not known here: start the console with --sender HOST:PORT, or"
            " BETTONG_CONSOLE_SENDER",
        )
    log = DeadLetterLog(where.kafka, planned.application, frame_bytes_max=where.frame_bytes_max)
    chosen = (
        log.those(question.ids)
        if question.ids
        else matching(log.dead_letters(), question.computation or None, None)
    )
    resending = Resending(planned, log.retried(), None if question.dry_run else where.sender, repeat=False)
    deadline_s = time.monotonic() + _RETRY_S_MAX
    fault = None
    try:
        for found in chosen:
            if resending.sent == _RETRIES_MAX or time.monotonic() > deadline_s:
                fault = "there are more: send the rest with another call"
                break
            resending.retry(found, time.time_ns())
    except BettongError as error:  # earlier ones were sent, and are reported
        if not (resending.sent or isinstance(error, ClientError)):
            raise
        fault = str(error)
    return {
        "dry_run": question.dry_run,
        "sent": resending.sent,
        "refused": resending.refused,
        "already": resending.already,
        "held": resending.held,
        "texts": list(resending.summary()),
        "fault": fault,
    }


def scaled(question: ScaleQuestion) -> dict[str, Any]:
    """As `bettong k8s scale`, without waiting for the workers. Raises ClusterError."""
    from bettong.cluster import acting  # the client of Kubernetes takes a second to load
    from bettong.cluster.api import Cluster

    count = question.workers
    with Cluster() as cluster:
        if count is None or question.dry_run:
            found = acting.scalable(cluster, question.release, count)
        else:
            found = acting.scale(cluster, question.release, count)
    return {
        "dry_run": question.dry_run,
        "before": found.wanted,
        "workers": count,
        "texts": [found.line()] if count is None else found.change_lines(count),
        "fault": None,
    }


def reset(question: ResetQuestion, planned: Plan, where: FoundLocations) -> dict[str, Any]:
    """As `bettong state reset`. Raises LocalError while a processor runs, LogError and StoreError."""
    with States(planned, where.on_this_machine()) as states:
        states.refuse_while_folded()
        records = states.records_to_fold()
        if not question.dry_run:
            states.clear()
    stages = ", ".join(stage.name for stage in planned.stages)
    return {
        "dry_run": question.dry_run,
        "records": records,
        "texts": [
            reset_text(planned.application, records, done=not question.dry_run),
            f"the next start folds every state of {stages} from the whole log, with the processor's code at that time",
            "delivered results stay, and are not delivered again; new ones come from the new states",
            "workers of the micro-batch schedule on other machines must end, too: their shared memory holds states",
        ],
        "fault": None,
    }
