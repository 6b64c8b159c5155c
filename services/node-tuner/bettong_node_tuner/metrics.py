"""The Prometheus metrics, on a registry per tuner."""

from collections import Counter as Tally
from collections.abc import Sequence

from prometheus_client import CollectorRegistry, Counter, Gauge

from bettong_node_tuner.decisions import Action, Decision, State, is_done
from bettong_node_tuner.settings import Mode
from bettong_node_tuner.targets import Setting

_WRITING = {Action.WRITE, Action.RESTORE}
_WRITTEN = {State.TUNED, State.REVERTED}


class TunerMetrics:
    """The metrics of one tuner; `registry` is served."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self._keys = Gauge(
            "bettong_node_tuner_keys",
            "Files, swap areas and threads of a setting, by state.",
            ("setting", "state"),
            registry=self.registry,
        )
        self._writes = Counter(
            "bettong_node_tuner_writes",
            "Values written, restored ones too.",
            ("setting",),
            registry=self.registry,
        )
        self._done = Gauge(
            "bettong_node_tuner_done", "1 when everything is set that can be set.", registry=self.registry
        )
        self._last_pass = Gauge(
            "bettong_node_tuner_last_pass_timestamp_seconds",
            "When the tuner last checked the node, Unix time in seconds.",
            registry=self.registry,
        )
        self._node_errors = Counter(
            "bettong_node_tuner_api_errors",
            "Calls that the API server refused or did not answer.",
            registry=self.registry,
        )

    def record(self, decisions: Sequence[Decision], mode: Mode, *, writes: bool, now_s: float) -> None:
        """Records one pass over the node; `writes`: whether it writes, or only reads."""
        tally = Tally((each.setting, each.state) for each in decisions)
        for setting in Setting:
            for state in State:
                self._keys.labels(setting.value, state.value).set(tally[setting, state])
        for each in decisions:
            if writes and each.action in _WRITING and each.state in _WRITTEN:
                self._writes.labels(each.setting.value).inc()
        self._done.set(is_done(list(decisions), mode))
        self._last_pass.set(now_s)

    def api_error(self) -> None:
        """Counts a report that the API server did not take."""
        self._node_errors.inc()
