"""What the console knows now: the newest moment, what it amounts to, its history, and what has happened."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass

from bettong.inspection.changes import Change, changes
from bettong.inspection.deployment import DeploymentAnswers, inspection
from bettong.inspection.measures import Measures, Moment, measures
from bettong.inspection.services import remote_rows
from bettong_console.history import History
from bettong_console.series import series_of

# A rate is of so many seconds: short enough to follow a burst, long enough that records which are written each half
# second, a little early or late, do not make it jump.
_RATE_S = 5
_CHANGES_MAX = 500


@dataclass(frozen=True, slots=True)
class Known:
    """The newest moment, and since when (Unix s) it is as it is. `away`: who does not answer, and why."""

    moment: Moment
    measured: Measures
    away: Mapping[str, str]


class Board:
    """Of one application, for one thread. `version` grows with each moment; 0: nobody has looked yet."""

    def __init__(self, application: str) -> None:
        self.application = application
        self.version = 0
        self.history = History()
        self.changes: deque[Change] = deque(maxlen=_CHANGES_MAX)
        self.known: Known | None = None
        self._moments: deque[Moment] = deque(maxlen=_RATE_S + 1)

    def add(self, time_s: float, answers: DeploymentAnswers) -> None:
        """What was answered. Where Redis is away, what it said before stays, with its time; charts have a hole."""
        self.version += 1
        if "redis" in answers.silent:
            if self.known is not None:
                self.known = Known(self.known.moment, self.known.measured, answers.silent)
            return
        moment = Moment(time_s, inspection(self.application, remote_rows(answers.live), answers), answers)
        if self._moments:
            self.changes.extend(changes(self._moments[-1], moment))
            if time_s <= self._moments[-1].time_s:  # the clock was set back: rates begin anew
                self._moments.clear()
        measured = measures(moment, self._moments[0] if self._moments else None)
        self._moments.append(moment)
        self.known = Known(moment, measured, answers.silent)
        self.history.add(time_s, series_of(measured))
