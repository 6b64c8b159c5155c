"""Whether a process that died is started again: pure, from the times of its deaths."""

from collections.abc import Sequence
from dataclasses import dataclass

from bettong.errors import FINAL_ERRORS, BettongError, LocalError

FINAL_STATUSES = frozenset(kind.exit_code for kind in FINAL_ERRORS)

DEATHS_MAX = 5  # more within the window means that starting again does not help
WINDOW_S = 120.0  # a processor that dies as soon as it is started needs about 60 s for that
WAIT_S_MAX = 5.0
_FIRST_WAIT_S = 0.2  # doubled with each death in the window


def final_error(status: int | None) -> type[BettongError]:
    """The error that a process ends with by this exit code, and that no new start mends; else LocalError."""
    return next((kind for kind in FINAL_ERRORS if kind.exit_code == status), LocalError)


@dataclass(frozen=True, slots=True)
class StartAgain:
    """Start it again after so many seconds."""

    wait_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """It died too often; stop everything."""

    deaths: int


def decide(
    deaths_s: Sequence[float], *, deaths_max: int = DEATHS_MAX, wait_s_max: float = WAIT_S_MAX
) -> StartAgain | GiveUp:
    """What to do after the last of `deaths_s` (seconds of one clock, ascending, at least one).

    `deaths_max` within `WINDOW_S` are answered by a new start, after at most `wait_s_max`.
    """
    recent = [death for death in deaths_s if deaths_s[-1] - death <= WINDOW_S]
    if len(recent) > deaths_max:
        return GiveUp(len(recent))
    # Twenty doublings are beyond any wait, and still a float.
    return StartAgain(min(wait_s_max, _FIRST_WAIT_S * 2.0 ** min(len(recent) - 1, 20)))
