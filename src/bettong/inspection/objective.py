"""For how long results have taken longer than was set as the objective. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bettong.metrics import LATENCY_WINDOW_S

# A burst of a moment stays in the p99 for the whole window, so only twice that says that it lasts.
ABOVE_S_MIN = 2.0 * LATENCY_WINDOW_S


@dataclass(frozen=True, slots=True)
class AboveObjective:
    """The p99 from client to delivery, and since when (Unix s) each look has found it above the objective."""

    objective_ms: float
    p99_ms: float
    since_s: float

    def lasts(self, at_s: float) -> bool:
        """Whether it is so for long enough that somebody should see why."""
        return at_s - self.since_s >= ABOVE_S_MIN


def above_objective(
    before: AboveObjective | None, objective_ms: float | None, p99_ms: float | None, at_s: float
) -> AboveObjective | None:
    """After one more look. None: within it, nothing was delivered of late, or there is no objective."""
    if objective_ms is None or p99_ms is None or p99_ms <= objective_ms:
        return None
    return AboveObjective(objective_ms, p99_ms, before.since_s if before is not None else at_s)
