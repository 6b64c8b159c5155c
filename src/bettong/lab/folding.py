"""Waits for the fold, of a suite that is measured."""

from __future__ import annotations

import time

from bettong import metrics
from bettong.edges.redis_store import LiveMetrics
from bettong.errors import LateError

S_MAX = 600.0
_POLL_S = 0.02


def await_folded(live: LiveMetrics, messages: int) -> None:
    """Returns when the processor has folded so many messages. Raises LateError after S_MAX."""
    deadline = time.monotonic() + S_MAX
    while sum(int(each[metrics.MESSAGES.name]) for each in live.partitions().values()) < messages:
        if time.monotonic() > deadline:
            raise LateError(f"{messages:,} messages are not folded after {S_MAX:g} s")
        time.sleep(_POLL_S)
