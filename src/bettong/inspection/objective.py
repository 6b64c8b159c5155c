"""For how long the latency of results has been above its objective. Pure."""

from __future__ import annotations

from dataclasses import dataclass

from bettong.metrics import LATENCY_WINDOW_S

# A short burst stays in the p99 for the whole window, so only twice that shows that it lasts.
ABOVE_S_MIN = 2.0 * LATENCY_WINDOW_S


@dataclass(frozen=True, slots=True)
class AboveObjective:
    """The p99 from client to delivery, and since when (Unix s) each inspection has found it above the objective."""

    objective_ms: float
    p99_ms: float
    since_s: float

    def lasts(self, at_s: float) -> bool:
        """Whether it has lasted long enough to report."""
        return at_s - self.since_s >= ABOVE_S_MIN


def above_objective(
    before: AboveObjective | None, objective_ms: float | None, p99_ms: float | None, at_s: float
) -> AboveObjective | None:
    """After one more inspection. None: within it, nothing was delivered recently, or there is no objective."""
    if objective_ms is None or p99_ms is None or p99_ms <= objective_ms:
        return None
    return AboveObjective(objective_ms, p99_ms, before.since_s if before is not None else at_s)
