"""`bettong lab soak`: what grows, and what may."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from bettong.chaos.spec import Kill
from bettong.errors import SettingsError
from bettong.lab.finding import probe
from bettong.lab.series import LAG, LATENCY, MEMORY, TAKEN, SeriesPoint
from bettong.lab.spec import LoadStep, Objective, RunSpec, lasting
from bettong.lab.statistics.growing import faults_of, grown, notes_on

LASTING_S = 1000.0


def series(metric: str, value: Callable[[float], float]) -> list[SeriesPoint]:
    """A point a second, uneven by a percent."""
    return [
        SeriesPoint(at_s, metric, value(at_s / LASTING_S) * (1 + 0.01 * (at_s % 3 - 1)))
        for at_s in map(float, range(int(LASTING_S)))
    ]


@pytest.mark.parametrize(
    ("metric", "value", "grows"),
    [
        (f"sender: {MEMORY}", lambda _: 100.0, False),
        (f"sender: {MEMORY}", lambda part: 100.0 + 30 * part, True),
        (f"kafka: {MEMORY}", lambda part: 100.0 + (30 * part if part < 0.5 else 15), False),
        (f"out: {LATENCY}", lambda part: 200.0 - 50 * part, False),
        (f"out: {LATENCY}", lambda part: 200.0 + 100 * part, True),
        (f"out: {LATENCY}", lambda part: 2.0 + 0.5 * part, False),
        (f"out: {LATENCY}", lambda part: 3.0 + 3 * part, True),
        (f"processor: {LAG}", lambda part: 10_000 * part, True),
        (f"processor: {TAKEN}", lambda _: 50_000.0, False),
        (f"processor: {TAKEN}", lambda part: 50_000.0 + 20_000 * part, False),
        (f"processor: {TAKEN}", lambda part: 50_000.0 - 15_000 * part, True),
    ],
)
def test_what_grows_or_falls_beyond_its_bound_is_a_fault(
    metric: str, value: Callable[[float], float], *, grows: bool
) -> None:
    (found,) = grown(series(metric, value), LASTING_S)
    assert found.metric == metric
    assert bool(found.fault) == grows
    assert not grows or metric in found.fault


def test_what_has_no_bound_is_not_judged() -> None:
    assert grown(series("sender: cores", lambda part: part), LASTING_S) == []


def test_messages_that_come_in_batches_fall_no_slower_than_they_do() -> None:
    """Nothing in most seconds, and all of three in one."""
    steady = [SeriesPoint(each, f"x: {TAKEN}", 1e5 if each % 3 == 0 else 0.0) for each in range(1000)]
    falling = [SeriesPoint(each.at_s, each.metric, each.value * (1 - each.at_s / 2000)) for each in steady]
    assert [each.fault for each in grown(steady, LASTING_S)] == [""]
    (found,) = grown(falling, LASTING_S)
    assert found.fault.startswith(f"x: {TAKEN} falls by -6")
    assert found.fault.endswith("at most -10% is allowed")


def test_a_run_too_short_to_say_does_not_pass() -> None:
    short = (
        series(f"sender: {MEMORY}", lambda _: 100.0)[:300] + series(f"redis: {MEMORY}", lambda _: 9.0)[:300]
    )
    growing = series(f"kafka: {MEMORY}", lambda part: 100.0 + 90 * part)
    first, last = faults_of(grown(short + growing, LASTING_S))
    assert first.startswith(f"kafka: {MEMORY} grows by")
    assert last == (
        f"too short to say whether these grow or fall, give it more --hours: redis: {MEMORY}, sender: {MEMORY}"
    )


def test_a_sink_with_few_results_is_no_fault_of_a_run_that_is_long_enough() -> None:
    seldom = [SeriesPoint(at_s, f"alerts: {LATENCY}", 5.0) for at_s in (200.0, 600.0)]
    found = grown(series(f"sender: {MEMORY}", lambda _: 100.0) + seldom, LASTING_S)
    assert faults_of(found) == []
    assert notes_on(found) == [f"too few results to say whether these grow: alerts: {LATENCY}"]


def test_only_the_last_step_is_judged() -> None:
    """The steps before it have other rates."""
    steps = series(f"processor: {TAKEN}", lambda part: 2000.0 if part < 0.3 else 1000.0)
    assert faults_of(grown(steps, LASTING_S))
    assert faults_of(grown(steps, LASTING_S, since_s=300.0)) == []


def test_a_run_is_made_longer_by_its_last_step() -> None:
    steps = [LoadStep(messages_per_s=1, seconds=60), LoadStep(messages_per_s=10, seconds=60)]
    spec = RunSpec(name="x", application="a", load="l", steps=steps)
    soak = lasting(spec, 3600)
    assert [step.seconds for step in soak.steps] == [60, 3540]
    assert soak.name == "x (soak)"  # so that `lab history` of the run goes on without it
    assert len(lasting(spec.model_copy(update={"name": "x" * 100}), 3600).name) == 100
    with pytest.raises(SettingsError, match="its first steps take longer than the 30 s"):
        lasting(spec, 30)
    with pytest.raises(SettingsError, match="has no steps"):
        lasting(RunSpec(name="x", application="a", load="l", messages=5), 30)


def test_a_run_made_shorter_than_its_warm_up_is_refused() -> None:
    steps = [LoadStep(messages_per_s=1, seconds=60)]
    spec = RunSpec(name="x", application="a", load="l", steps=steps, warm_up_s=40)
    with pytest.raises(SettingsError, match="x: warm_up_s is 40 and the first step takes 36 s"):
        lasting(spec, 36)


def test_a_run_made_shorter_leaves_out_none_of_its_faults() -> None:
    spec = RunSpec(
        name="x",
        application="a",
        load="l",
        steps=[LoadStep(messages_per_s=1, seconds=60)],
        faults=[Kill(kind="kill", targets=["kafka"], at_s=[50])],
        objective=Objective(p99_ms=50),
    )
    assert len(lasting(spec, 55).planned_faults) == 1
    with pytest.raises(SettingsError, match="x: a fault at 50 s: the run lasts 40 s"):
        lasting(spec, 40)
    with pytest.raises(SettingsError, match="x: a fault at 50 s: the run lasts 25 s"):
        probe(spec, 1_000, 20, say=print)
