"""Whether an application sustains a rate: one step at that rate on its own suite, judged by objective and lag."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bettong.errors import LateError, SettingsError
from bettong.lab.run import once
from bettong.lab.spec import LoadStep, Objective, RunSpec
from bettong.lab.statistics.objective import missed
from bettong.lab.statistics.progress import LagTrend, lag_trend
from bettong.lab.statistics.search import Probe

# Polls of the lag while a rate is held: a few times more than its slope needs, at intervals within these bounds.
_LAG_POLLS = 15
_LAG_POLL_S_MIN, _LAG_POLL_S_MAX = 0.5, 5.0


def probe(spec: RunSpec, rate: float, seconds: float, *, say: Callable[[str], None]) -> Probe:
    """Holds the rate for the warm-up and `seconds`.

    The rate is missed if the objective is missed, if the lag grows meanwhile, or if the last results come later than
    `seconds` after the last message. Raises SettingsError for a run without an objective, or with a fault after its
    end; LabError for wrong results. `say`: called with the current activity.
    """
    if spec.objective == Objective():
        raise SettingsError(f"{spec.name} has no objective: give one, such as [objective] with p99_ms = 50")
    step = LoadStep(messages_per_s=rate, seconds=spec.warm_up_s + seconds)
    tried = spec.over([step])
    try:
        repeat = once(
            tried,
            settle_s_max=seconds,
            positions_every_s=min(_LAG_POLL_S_MAX, max(_LAG_POLL_S_MIN, seconds / _LAG_POLLS)),
            say=say,
        )
    except LateError as error:
        return Probe(rate, str(error))
    values = {each.metric: [each.value] for each in repeat.measured if each.unit == "ms"}
    lag = lag_trend(repeat.positions, spec.warm_up_s, tried.lasting_s, rate)
    return judge_rate(rate, missed(spec.objective, values, tried.judged_steps), lag)


def judge_rate(rate: float, missed_lines: Sequence[str], lag: LagTrend | None) -> Probe:
    """The outcome of a rate whose results all came. `lag`: None if its trend is unknown, which is no fault."""
    if lag is None:
        return Probe(rate, "; ".join(missed_lines))
    return Probe(rate, "; ".join([*missed_lines, *filter(None, [lag.fault])]), lag.per_s)
