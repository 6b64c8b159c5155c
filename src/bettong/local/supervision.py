"""Decides from the times of its deaths whether a process is started again. Pure."""

from collections.abc import Sequence
from dataclasses import dataclass

from bettong.backoff import pause_s
from bettong.errors import FINAL_ERRORS, BettongError, LocalError

FINAL_STATUSES = frozenset(kind.exit_code for kind in FINAL_ERRORS)

DEATHS_MAX = 5  # more in a row means that restarting does not help
# Additional deaths that are allowed where the process got past their causes. A frame that kills a sender costs two to
# four deaths, and a start takes 2 s: this lets a sender past at least 25 such frames, and bounds how long it dies.
EXPLAINED_MAX = 100
FORGET_S = 30.0  # without a death; a processor that dies as soon as it has started dies every 15 s
WAIT_S_MAX = 5.0
_SECOND_WAIT_S = 0.4  # doubled with each further death in a row; the first restart is immediate


def final_error(status: int | None) -> type[BettongError]:
    """The error with this exit code, if it is one that a restart does not mend; else LocalError."""
    return next((kind for kind in FINAL_ERRORS if kind.exit_code == status), LocalError)


@dataclass(frozen=True, slots=True)
class StartAgain:
    """Start it again after `wait_s` seconds."""

    wait_s: float


@dataclass(frozen=True, slots=True)
class GiveUp:
    """It died too often: it stays down, the other processes run on."""

    deaths: int


def decide(
    deaths_s: Sequence[float],
    *,
    explained: int = 0,
    deaths_max: int = DEATHS_MAX,
    wait_s_max: float = WAIT_S_MAX,
) -> StartAgain | GiveUp:
    """What to do after the last of `deaths_s` (seconds of one clock, ascending, at least one).

    Deaths are in a row while each follows the one before within `FORGET_S`; those before a longer rest are forgotten.
    Up to `deaths_max` in a row lead to a restart, after at most `wait_s_max`. `explained`: how many of the first deaths
    had a cause that the process has got past since; up to EXPLAINED_MAX of them do not count.
    """
    in_row = in_a_row(deaths_s)
    count = min(in_row, len(deaths_s) - explained)
    if count > deaths_max or in_row > deaths_max + EXPLAINED_MAX:
        return GiveUp(in_row)
    return StartAgain(pause_s(count - 1, first_s=_SECOND_WAIT_S, max_s=wait_s_max))


def in_a_row(deaths_s: Sequence[float]) -> int:
    """How many of the last deaths followed the one before within `FORGET_S`, the first of them included."""
    count = min(len(deaths_s), 1)
    while count < len(deaths_s) and deaths_s[-count] - deaths_s[-count - 1] <= FORGET_S:
        count += 1
    return count
