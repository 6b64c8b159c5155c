"""The life cycle of a tuner: check and act, report, wait, repeat; at the end everything is restored."""

import logging
import time
from collections.abc import Callable, Sequence
from typing import Protocol

from bettong_node_tuner.decisions import Decision, State, is_done
from bettong_node_tuner.effects import Effects
from bettong_node_tuner.errors import NodeError
from bettong_node_tuner.metrics import TunerMetrics
from bettong_node_tuner.report import annotation, location
from bettong_node_tuner.settings import Mode, TunerSettings

_log = logging.getLogger(__name__)
_WARNED = frozenset({State.FAILED, State.REFUSED, State.EXTERNAL})


class TunedNode(Protocol):
    """Receives the report: `bettong_node_tuner.node.Node`, which takes seconds of CPU time to load."""

    def annotate(self, text: str) -> None:
        """Sets the report. Raises NodeError."""

    def remove_taint(self) -> bool:
        """Removes the startup taint; returns whether there was one. Raises NodeError."""


class Tuner:
    """Tunes one node. Without a `node` it reports only to log and metrics."""

    def __init__(
        self, settings: TunerSettings, effects: Effects, metrics: TunerMetrics, node: TunedNode | None
    ) -> None:
        self._settings = settings
        self._effects = effects
        self._metrics = metrics
        self._node = node
        self._reported = ""
        self._tainted = True
        self._logged: dict[str, str] = {}

    def run(self, is_ended: Callable[[float], bool]) -> None:
        """Runs until `is_ended`, which waits for so many seconds at most. In mode apply it then restores everything.

        Raises JournalError when it cannot continue.
        """
        self.check()
        while not is_ended(self._settings.interval_s):
            self.check()
        if self._settings.mode is Mode.APPLY:
            self.revert()

    def check(self) -> list[Decision]:
        """One pass; returns the state of each key after it."""
        return self._pass(self._settings, if_not_reported="retried at the next pass")

    def revert(self) -> list[Decision]:
        """Restores everything that is still ours. Reporting may fail: removing the release removes its permission."""
        wanted = self._settings.model_copy(update={"mode": Mode.REVERT})
        found = self._pass(wanted, if_not_reported="not retried: the annotation may be out of date")
        self._effects.end()
        return found

    def _pass(self, wanted: TunerSettings, *, if_not_reported: str) -> list[Decision]:
        found = self._effects.perform(wanted)
        writes = wanted.mode in {Mode.APPLY, Mode.REVERT}
        self._metrics.record(found, wanted.mode, writes=writes, now_s=time.time())
        self._log_changes(found)
        try:
            self._report(found, wanted.mode)
        except NodeError as error:
            self._metrics.api_error()
            _log.warning("%s; %s", error, if_not_reported)
        return found

    def _log_changes(self, decisions: Sequence[Decision]) -> None:
        """Logs a line for each key whose state has changed."""
        states = {location(each): f"{each.state.value} {each.why}".strip() for each in decisions}
        for each in decisions:
            state = states[location(each)]
            if self._logged.get(location(each)) != state:
                level = logging.WARNING if each.state in _WARNED else logging.INFO
                _log.log(
                    level,
                    "%s %s: %s now=%r wanted=%r",
                    each.setting.value,
                    location(each),
                    state,
                    each.now,
                    each.value,
                )
        self._logged = states

    def _report(self, decisions: list[Decision], mode: Mode) -> None:
        if self._node is None:
            return
        text = annotation(decisions, mode)
        if text != self._reported:
            self._node.annotate(text)
            self._reported = text
        if self._tainted and is_done(decisions, mode):
            if self._node.remove_taint():
                _log.info("removed the startup taint: the node takes pods")
            self._tainted = False
