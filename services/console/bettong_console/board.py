"""The console's current data: the newest inspection, its measures, their history, and changes."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, replace

from bettong.inspection.accounts import AccountLine
from bettong.inspection.alerts import Alerts, alerts
from bettong.inspection.changes import Change, added
from bettong.inspection.deployment import DeploymentAnswers, Inspection, inspection
from bettong.inspection.measures import Measures, TimedInspection, measures
from bettong.inspection.objective import AboveObjective, above_objective
from bettong.inspection.overall_state import Need, needs
from bettong.inspection.services import remote_rows
from bettong.inspection.trends import RATE_S, of_late
from bettong.inspection.watched import Watched, watched
from bettong_console.history import History
from bettong_console.series import series_of


@dataclass(frozen=True, slots=True)
class Known:
    """The newest inspection for which Redis answered, its measures, and the deployment now.

    `above`: since when the p99 is above the objective; None where it is not.
    """

    moment: TimedInspection
    measured: Measures
    accounts: Sequence[AccountLine]
    now: Inspection
    above: AboveObjective | None

    def needs(self) -> list[Need]:
        """The problems that need a person, the worst first."""
        return needs(self.now, self.measured, self.accounts, self.above)


class Board:
    """Of one application, for one thread. `version` grows with each inspection; 0 before the first.

    `objective_p99_ms`: the objective for the p99 from client to delivery; None where none is set.
    """

    def __init__(self, application: str, objective_p99_ms: float | None = None) -> None:
        self.application = application
        self._objective_p99_ms = objective_p99_ms
        self.version = 0
        self.history = History()
        self.known: Known | None = None
        # Why Kafka or Redis did not answer the last time.
        self.silent: Sequence[str] = ()
        # The time of the first inspection, Unix s; None before.
        self.first_s: float | None = None
        self._watched: Watched | None = None
        self._alerts: Alerts = {}
        self._moments: deque[TimedInspection] = deque(maxlen=int(RATE_S) + 2)

    @property
    def changes(self) -> Sequence[Change]:
        """All changes, the oldest first."""
        return self._watched.changes if self._watched is not None else ()

    def note(self, change: Change) -> None:
        """Adds a change that a person made from a page. Not before the first inspection."""
        self._report([change])
        self.version += 1

    def add(self, time_s: float, at_s: float, answers: DeploymentAnswers, *, every_s: int = 1) -> None:
        """Adds the answers at `time_s` (Unix s), and by a monotonic clock (`at_s`).

        `every_s`: the interval of inspections until now. While Redis is away, its last data stays, with its time, and
        charts have a hole.
        """
        self.version += 1
        self.silent = tuple(answers.silent.values())
        self.first_s = time_s if self.first_s is None else self.first_s
        was_away = self._watched is None or "redis" in self._watched.found.away
        found = inspection(self.application, remote_rows(answers.live, answers.silent), answers)
        self._watched = watched(self._watched, found, at_s=at_s, unix_s=time_s)
        if "redis" in answers.silent:
            if self.known is not None:
                self.known = replace(self.known, now=found)
            return
        moment = TimedInspection(time_s, found, answers)
        self._moments.append(moment)
        before = of_late(tuple(self._moments), lambda each: each.time_s)[0]
        measured = measures(moment, before, self._watched.trends)
        above = above_objective(
            self.known.above if self.known is not None and not was_away else None,
            self._objective_p99_ms,
            measured.p99_ms,
            time_s,
        )
        self.known = Known(moment, measured, self._watched.accounts, found, above)
        self._alerts, begun_or_over = alerts(self._alerts, self.known.needs(), time_s)
        self._report(begun_or_over)
        # The time in which Redis was away stays a hole.
        self.history.add(time_s, series_of(measured), every_s=1 if was_away else every_s)

    def _report(self, changes: Sequence[Change]) -> None:
        if self._watched is not None:
            self._watched = replace(self._watched, changes=added(self._watched.changes, changes))
