"""Whether metrics of two runs differ, by how much, and whether that is more than noise. Pure.

    values of each run, before and after ──> the ratio of their geometric means, with its 95 % interval (bootstrap)
                                         ──> how often equal runs would differ so much (permutations)

Values are compared as ratios, by their logarithms, because noise grows with the value. A difference is called a change
if it is at least `least`, and so rare among equal runs that at most one in twenty of all that are called changes is
chance (Benjamini and Hochberg's rule for the false discovery rate, 1995). So a table of thirty metrics does not raise a
false alarm each time. Few runs cannot tell a change from noise: `runs_needed` says how many can.

Details (memory of each kind of process, the latency at p99.99) are corrected apart from the metrics that they explain
(throughput, latency, CPU of all): together with twenty details, a change of the throughput would take more runs to show
than alone. One in twenty then holds for each family (Efron, "Simultaneous inference: when should hypothesis testing
problems be combined?", 2008).
"""

from __future__ import annotations

import itertools
import math
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum
from statistics import median
from typing import TYPE_CHECKING

from bettong.errors import LabError

if TYPE_CHECKING:
    import numpy as np

LEAST = 0.02
CHANCE = 0.05
# Units in which less is better.
COSTS = frozenset({"us", "ms", "s", "MB", "% of a core", "% more"})
# Metrics of a run of the lab; other measurements have no details.
_DETAIL = re.compile(
    r"(CPU|memory) of (?!all\b).*|PSS of .*|GC pauses of .*|network, .*|.*/s, (p90|p99\.99|max)"
    r"|.*: longest pause .*, .*|.*: .*, mean"
)
_RESAMPLES = 9_999
_SEED = 1


class ChangeVerdict(StrEnum):
    """The outcome of a comparison."""

    BETTER = "better"
    WORSE = "worse"
    NO_CHANGE = "no change shown"
    TOO_FEW = "too few runs"


@dataclass(frozen=True, slots=True)
class MetricRuns:
    """A metric with its value in each run. All values must be above 0, because they are compared as ratios."""

    name: str
    unit: str
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """`before`, `after`: medians. `ratio`: after to before, between `low` and `high` with 95 % confidence. `chance`:
    the p-value, the share of equal runs that would differ as much or more.
    """

    name: str
    unit: str
    before: float
    after: float
    ratio: float
    low: float
    high: float
    chance: float
    verdict: ChangeVerdict


def compare(
    before: Sequence[MetricRuns], after: Sequence[MetricRuns], *, least: float = LEAST
) -> list[Comparison]:
    """Compares each metric that both have, in the order of `before`. Raises LabError if none can be, or one cannot.

    `least`: a smaller change does not count, whatever the statistics say; 0.02 is 2 %.
    """
    check_installed()
    import numpy as np
    from scipy.stats import false_discovery_control

    others = {each.name: each for each in after}
    pairs = [(each, others[each.name]) for each in before if each.name in others]
    if not pairs:
        raise LabError("the two have no metric in common: compare runs of the same measurements")
    for one, other in pairs:
        _check(one, other)
    logs = [(np.log(one.values), np.log(other.values)) for one, other in pairs]
    p_values = [_p_value(one, other) for one, other in logs]
    detailed = [is_detail(one.name) for one, _ in pairs]
    sizes = Counter(detailed)
    adjusted = np.empty(len(pairs))
    for family in sizes:
        members = [number for number, kind in enumerate(detailed) if kind is family]
        adjusted[members] = false_discovery_control([p_values[number] for number in members])
    found = []
    for (one, other), (one_log, other_log), p_value, adjusted_p, family in zip(
        pairs, logs, p_values, adjusted.tolist(), detailed, strict=True
    ):
        ratio = math.exp(float(other_log.mean() - one_log.mean()))
        low, high = _interval(one_log, other_log)
        few = _least_p_value(len(one_log), len(other_log)) > CHANCE / sizes[family]
        found.append(
            Comparison(
                one.name,
                one.unit,
                median(one.values),
                median(other.values),
                ratio,
                low,
                high,
                p_value,
                _verdict(one.unit, ratio, changed=adjusted_p <= CHANCE and abs(ratio - 1) >= least, few=few),
            )
        )
    return found


def check_installed() -> None:
    """Raises LabError without scipy: to be called before hours of measurements that are to be compared."""
    try:
        import scipy  # noqa: F401 - only whether it can be
    except ImportError:
        raise LabError("comparing needs the package scipy: pip install 'bettong[lab]'") from None


def is_detail(metric: str) -> bool:
    """Whether a metric explains others, and is corrected apart from them."""
    return _DETAIL.fullmatch(metric) is not None


def families(metrics: Iterable[str]) -> dict[str, int]:
    """How many of these metrics are corrected together, by the name of their family; without empty families."""
    sizes = Counter("details" if is_detail(each) else "metrics" for each in metrics)
    return {name: sizes[name] for name in ("metrics", "details") if sizes[name]}


def runs_needed(metrics: int) -> int:
    """How many runs of each side can show a change of one of so many metrics."""
    return next(runs for runs in itertools.count(2) if _least_p_value(runs, runs) <= CHANCE / metrics)


def _verdict(unit: str, ratio: float, *, changed: bool, few: bool) -> ChangeVerdict:
    if changed:
        return ChangeVerdict.BETTER if (ratio < 1) == (unit in COSTS) else ChangeVerdict.WORSE
    return ChangeVerdict.TOO_FEW if few else ChangeVerdict.NO_CHANGE


def _check(one: MetricRuns, other: MetricRuns) -> None:
    if one.unit != other.unit:
        raise LabError(f"{one.name}: {one.unit} in one run and {other.unit} in the other: measure both alike")
    for each in (one, other):
        if not each.values or not all(0 < value < math.inf for value in each.values):
            raise LabError(f"{one.name}: its values are {list(each.values)}; a ratio needs values above 0")


def _least_p_value(one: int, other: int) -> float:
    """The smallest two-sided p-value that permutations of so many values can have."""
    return min(1.0, 2 / math.comb(one + other, one))


def _p_value(one: np.ndarray, other: np.ndarray) -> float:
    """How often values, assigned anew to the two sides, differ as much: of all assignments, where these are few."""
    import numpy as np
    from scipy.stats import permutation_test

    for alone in (one, other):
        if len(alone) == 1:  # scipy needs two runs; a single one has as many assignments as there are runs
            every = np.concatenate((one, other))
            return min(1.0, 2 * min(float(np.mean(every <= alone)), float(np.mean(every >= alone))))
    tested = permutation_test(
        (one, other),
        lambda first, second, axis: np.mean(second, axis=axis) - np.mean(first, axis=axis),
        vectorized=True,
        n_resamples=_RESAMPLES,
        rng=np.random.default_rng(_SEED),
    )
    return float(tested.pvalue)


def _interval(one: np.ndarray, other: np.ndarray) -> tuple[float, float]:
    """The interval of the ratio; the ratio itself if a side has a single run, or all values are equal."""
    import numpy as np
    from scipy.stats import bootstrap

    difference = float(other.mean() - one.mean())
    if min(len(one), len(other)) < 2 or (np.ptp(one) == 0 and np.ptp(other) == 0):
        return math.exp(difference), math.exp(difference)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # where BCa fails, its interval is not finite: see below
        drawn = bootstrap(
            (one, other),
            lambda first, second, axis: np.mean(second, axis=axis) - np.mean(first, axis=axis),
            vectorized=True,
            n_resamples=_RESAMPLES,
            method="BCa",
            rng=np.random.default_rng(_SEED),
        )
    low, high = (float(each) for each in drawn.confidence_interval)
    if not (math.isfinite(low) and math.isfinite(high)):
        low, high = (float(each) for each in np.percentile(drawn.bootstrap_distribution, [2.5, 97.5]))
    return math.exp(low), math.exp(high)
