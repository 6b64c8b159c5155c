"""Whether an application sustains a rate: one step of it, on a suite of its own, against the objective, and the lag."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from bettong.errors import LateError, SettingsError
from bettong.lab.run import once
from bettong.lab.spec import LoadStep, Objective, RunSpec
from bettong.lab.statistics.objective import missed
from bettong.lab.statistics.progress import LagTrend, lag_trend
from bettong.lab.statistics.search import Probe

# While a rate is held the lag is asked for so often: a few times more than its slope needs, and never busily.
_POSITIONS = 15
_EVERY_S_MIN, _EVERY_S_MAX = 0.5, 5.0


def probe(spec: RunSpec, rate: float, seconds: float, *, say: Callable[[str], None]) -> Probe:
    """Holds the rate for the warm-up and so many seconds.

    It is missed where the objective is, where the lag grows meanwhile, or where the results need longer than it was
    held to come to their end. Raises SettingsError for a run without an objective, or with a fault that comes later;
    LabError where results are wrong. `say`: gets what it is doing.
    """
    if spec.objective == Objective():
        raise SettingsError(f"{spec.name} has no objective: give one, such as [objective] with p99_ms = 50")
    step = LoadStep(messages_per_s=rate, seconds=spec.warm_up_s + seconds)
    tried = spec.over([step])
    try:
        repeat = once(
            tried,
            settle_s_max=seconds,
            positions_every_s=min(_EVERY_S_MAX, max(_EVERY_S_MIN, seconds / _POSITIONS)),
            say=say,
        )
    except LateError as error:
        return Probe(rate, str(error))
    values = {each.metric: [each.value] for each in repeat.measured if each.unit == "ms"}
    lag = lag_trend(repeat.positions, spec.warm_up_s, tried.lasting_s, rate)
    return judged(rate, missed(spec.objective, values), lag)


def judged(rate: float, missed_lines: Sequence[str], lag: LagTrend | None) -> Probe:
    """What a rate that came to its end is. `lag`: None where nobody knows whether it grows, which is no fault."""
    if lag is None:
        return Probe(rate, "; ".join(missed_lines))
    return Probe(rate, "; ".join([*missed_lines, *filter(None, [lag.fault])]), lag.per_s)
