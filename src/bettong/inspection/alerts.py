"""Problems that need a person, as events: when an alert began, and when it was over. Pure.

A problem of less than BEGINS_S is no alert, and an alert that was away for less than ENDS_S continues: a number that
swings about its bound is one alert, not one a second.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from bettong.inspection.changes import Change, ChangeKind
from bettong.inspection.overall_state import Need

ALERT = "alert"
OVER = "alert over"
BEGINS_S = 2.0
ENDS_S = 10.0
# Beyond these only the first ones are kept: more than anybody reads.
ALERTS_MAX = 64


@dataclass(frozen=True, slots=True)
class Alert:
    """A need since `at_s`, last seen at `last_s`.

    `has_begun`: whether it is reported; `need` is as of then, before that the newest.
    """

    need: Need
    at_s: float
    last_s: float
    has_begun: bool = False


Alerts = Mapping[str, Alert]


def alerts(before: Alerts, found: Sequence[Need], at_s: float) -> tuple[Alerts, list[Change]]:
    """The alerts that stand now, by what they are about, and their changes to report. `found`: the worst first."""
    needed: dict[str, Need] = {}
    for need in found:
        needed.setdefault(need.about, need)
    standing, changes = dict(before), []
    for about, need in needed.items():
        known = standing.get(about)
        if known is not None:
            standing[about] = replace(known, need=known.need if known.has_begun else need, last_s=at_s)
        elif len(standing) < ALERTS_MAX:
            standing[about] = Alert(need, at_s, at_s)
    for about, alert in list(standing.items()):
        if at_s - alert.last_s >= ENDS_S or (about not in needed and not alert.has_begun):
            del standing[about]
            if alert.has_begun:
                lasted_s = alert.last_s - alert.at_s
                changes.append(
                    Change(at_s, ChangeKind.ALERT, OVER, f"{alert.need.what} (it lasted {lasted_s:,.0f} s)")
                )
        elif not alert.has_begun and at_s - alert.at_s >= BEGINS_S:
            standing[about] = replace(alert, has_begun=True)
            changes.append(Change(at_s, ChangeKind.ALERT, ALERT, f"{alert.need.what}; {alert.need.remedy}"))
    return standing, changes
