"""What the receiver reports of itself: its state, what it waits for, and the metrics of its deliveries."""

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

# What is waited for is said once, and again after this long: a wait may last for hours.
_SAY_AGAIN_S = 10.0


class ReceiverStatus:
    """The state of the service. Safe to use from several threads; each change is a line in the log."""

    def __init__(self, clock_s: Callable[[], float], log: Logger) -> None:
        self._clock_s = clock_s
        self._log = log
        self._lock = threading.Lock()
        self._state = STARTING
        self._waits: dict[str, str] = {}
        self._said_s: dict[str, float] = {}
        self._since_s = clock_s()
        self._failure = ""

    def enter(self, state: str) -> None:
        """The service is in that state from now on; while it waits for something, it says that instead."""
        with self._lock:
            self._state = state
            self._since_s = self._clock_s()
        self._log.info(state)

    def opens(self, part: str, detail: str) -> None:
        """A part is being opened for the first time: waited for until `has`, and not worth a line in the log."""
        with self._lock:
            self._waits.setdefault(part, detail)

    def fails(self, reason: str) -> None:
        """The service cannot go on and ends: its last record says why."""
        with self._lock:
            self._state, self._waits = STOPPING, {}
            self._failure = reason

    def waits_for(self, part: str, detail: str) -> None:
        """The service waits for a part ("Kafka", "Redis"). May be called as often as one likes."""
        now_s = self._clock_s()
        with self._lock:
            if not self._waits:
                self._since_s = now_s
            said_s = self._said_s.get(part) if part in self._waits else None
            is_news = said_s is None or now_s - said_s >= _SAY_AGAIN_S
            self._waits[part] = detail
            if is_news:
                self._said_s[part] = now_s
        if is_news:
            self._log.warning(_WAITING, part=part, detail=detail)

    def has(self, part: str) -> None:
        """A part answers. Costs nothing when it was not waited for."""
        if part not in self._waits:
            return
        with self._lock:
            self._waits.pop(part, None)
            if not self._waits:
                self._since_s = self._clock_s()
            was_said = self._said_s.pop(part, None) is not None
        if was_said:
            self._log.info("answers again", part=part)

    def metrics(self) -> dict[str, str | float]:
        """State, since when, and why."""
        with self._lock:
            return {
                metrics.SERVICE.name: RECEIVER.name,
                metrics.STATE.name: _WAITING if self._waits else self._state,
                metrics.SINCE.name: self._since_s,
                metrics.DETAIL.name: self._failure or "; ".join(self._waits.values()),
            }


def metrics_of(counts: Mapping[str, DeliveryCounts]) -> dict[str, float]:
    """The metrics of what was delivered: all sinks together, dead letters apart, and `<name>/<sink>` for each sink."""
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
