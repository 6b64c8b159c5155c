"""Where logs ended a moment ago, which lag is counted up to. Pure.

A worker reports its offsets every BETTONG_LIVE_INTERVAL_MS. Up to where a log ends now, whatever came since the last
report would count as lag, however well the worker keeps up: up to 200 records at 400 a second. Up to where it ended
before that report was due, only those count that the worker had time to fold and to report.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from typing import Generic, TypeVar

_Key = TypeVar("_Key")

# How much later than due a report may be there: it is written between two records, or after a batch.
_REPORT_TAKES_S = 0.25
# After a longer pause much may have come since, which would be no lag.
_PAUSE_S_MAX = 2.0


class EarlierEnds(Generic[_Key]):
    """The ends of logs at some times, in seconds of one monotonic clock: those of `report_age_s_max`, and one older.

    `report_age_s_max`: how old a report may be of a worker that keeps up.
    """

    def __init__(self, report_interval_s: float) -> None:
        self.report_age_s_max = report_interval_s + _REPORT_TAKES_S
        self._known: deque[tuple[float, Mapping[_Key, int]]] = deque()

    def add(self, ends: Mapping[_Key, int], now_s: float) -> None:
        """Adds where the logs end now."""
        self._known.append((now_s, ends))

    def before(self, now_s: float) -> Mapping[_Key, int] | None:
        """Where the logs ended when the reports that can be read now were not due yet; None if that is unknown."""
        while len(self._known) > 1 and now_s - self._known[1][0] >= self.report_age_s_max:
            self._known.popleft()
        if not self._known:
            return None
        at_s, ends = self._known[0]
        return ends if 0 <= now_s - at_s - self.report_age_s_max <= _PAUSE_S_MAX else None
