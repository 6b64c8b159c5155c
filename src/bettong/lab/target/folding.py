"""Waits until a processor has processed a number of messages."""

from __future__ import annotations

import time
from collections.abc import Callable

from bettong import metrics
from bettong.edges.redis_store import LiveMetrics
from bettong.errors import LateError

S_MAX = 600.0
_POLL_S = 0.02


def await_folded(live: LiveMetrics, messages: int) -> None:
    """Returns when the processor of a suite has processed so many messages. Raises LateError after S_MAX."""
    await_count(
        lambda: sum(int(each[metrics.MESSAGES.name]) for each in live.partitions().values()),
        messages,
        poll_s=_POLL_S,
    )


def await_count(folded: Callable[[], int], messages: int, *, poll_s: float) -> None:
    """Returns when `folded` returns so many messages. Raises LateError after S_MAX."""
    deadline = time.monotonic() + S_MAX
    while folded() < messages:
        if time.monotonic() > deadline:
            raise LateError(f"{messages:,} messages are not processed after {S_MAX:g} s")
        time.sleep(poll_s)
