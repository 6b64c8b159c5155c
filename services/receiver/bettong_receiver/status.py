"""The receiver's state, what it waits for, and the metrics of its deliveries."""

import threading
from collections.abc import Callable, Mapping

from bettong import metrics
from bettong.logs import Logger
from bettong.services import RECEIVER
from bettong.topics import DEAD_LETTERS
from bettong_receiver.progress import DeliveryCounts

STARTING = "starting"
RUNNING = "running"
STOPPING = "stopping"
_WAITING = "waiting"

# A wait is logged when it begins, and then at this interval: it may last for hours.
_LOG_AGAIN_S = 10.0


class ReceiverStatus:
    """The state of the service. Safe to use from several threads; each change is a line in the log."""

    def __init__(self, clock_s: Callable[[], float], log: Logger) -> None:
        self._clock_s = clock_s
        self._log = log
        self._lock = threading.Lock()
        self._state = STARTING
        self._waits: dict[str, str] = {}
        self._logged_s: dict[str, float] = {}
        self._since_s = clock_s()
        self._failure = ""

    def set_state(self, state: str) -> None:
        """Sets the state. While the service waits for something, it reports `waiting` instead."""
        with self._lock:
            self._state = state
            self._since_s = self._clock_s()
        self._log.info(state)

    def set_opening(self, part: str, detail: str) -> None:
        """Waits, without a log line, for a part that is being opened for the first time, until `clear_waiting`."""
        with self._lock:
            self._waits.setdefault(part, detail)

    def set_failed(self, reason: str) -> None:
        """The service stops because of an error: its last live record holds the reason."""
        with self._lock:
            self._state, self._waits = STOPPING, {}
            self._failure = reason

    def set_waiting(self, part: str, detail: str) -> None:
        """The service waits for a part ("Kafka", "Redis"). May be called repeatedly."""
        now_s = self._clock_s()
        with self._lock:
            if not self._waits:
                self._since_s = now_s
            logged_s = self._logged_s.get(part) if part in self._waits else None
            is_due = logged_s is None or now_s - logged_s >= _LOG_AGAIN_S
            self._waits[part] = detail
            if is_due:
                self._logged_s[part] = now_s
        if is_due:
            self._log.warning(_WAITING, part=part, detail=detail)

    def clear_waiting(self, part: str) -> None:
        """A part answers. Does nothing unless the service waited for it."""
        if part not in self._waits:
            return
        with self._lock:
            self._waits.pop(part, None)
            if not self._waits:
                self._since_s = self._clock_s()
            was_logged = self._logged_s.pop(part, None) is not None
        if was_logged:
            self._log.info("answers again", part=part)

    def metrics(self) -> dict[str, str | float]:
        """The state, since when, and the reason."""
        with self._lock:
            return {
                metrics.SERVICE.name: RECEIVER.name,
                metrics.STATE.name: _WAITING if self._waits else self._state,
                metrics.SINCE.name: self._since_s,
                metrics.DETAIL.name: self._failure or "; ".join(self._waits.values()),
            }


def metrics_of(counts: Mapping[str, DeliveryCounts]) -> dict[str, float]:
    """Metrics of deliveries: of all sinks together, dead letters separately, and `<name>/<sink>` for each sink."""
    total = DeliveryCounts()
    found: dict[str, float] = {}
    for sink, each in counts.items():
        if sink == DEAD_LETTERS:
            found[metrics.DEAD_LETTERS.name] = each.messages
        else:
            total.add(each)
            found[f"{metrics.MESSAGES.name}/{sink}"] = each.messages
    dead = counts[DEAD_LETTERS]
    return found | {
        metrics.MESSAGES.name: total.messages,
        metrics.FRAMES.name: total.frames,
        metrics.DUPLICATES.name: total.duplicates + dead.duplicates,
        metrics.GAPS.name: total.gaps + dead.gaps,
        metrics.UNREADABLE.name: total.unreadable + dead.unreadable,
    }
