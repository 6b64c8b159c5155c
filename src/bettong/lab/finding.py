"""Whether an application sustains a rate: one step of it, on a suite of its own, against the objective."""

from __future__ import annotations

from collections.abc import Callable

from bettong.errors import LateError, SettingsError
from bettong.lab.objective import missed
from bettong.lab.run import once
from bettong.lab.search import Probe
from bettong.lab.spec import LoadStep, Objective, RunSpec


def probe(spec: RunSpec, rate: float, seconds: float, *, say: Callable[[str], None]) -> Probe:
    """Holds the rate for the warm-up and so many seconds.

    It is missed where the objective is, or where the results need longer than it was held to come to their end. Raises
    SettingsError for a run without an objective, or with a fault that comes later; LabError where results are wrong.
    `say`: gets what it is doing.
    """
    if spec.objective == Objective():
        raise SettingsError(f"{spec.name} has no objective: give one, such as [objective] with p99_ms = 50")
    step = LoadStep(messages_per_s=rate, seconds=spec.warm_up_s + seconds)
    tried = spec.over([step])
    try:
        measured = once(tried, settle_s_max=seconds, say=say).measured
    except LateError as error:
        return Probe(rate, str(error))
    values = {each.metric: [each.value] for each in measured if each.unit == "ms"}
    return Probe(rate, "; ".join(missed(spec.objective, values)))
