"""Growth over a run: rising metrics are distinguished from flat, noisy, or briefly disturbed ones."""

import random

import pytest

from bettong.chaos.following import Followed, grown
from bettong.chaos.growth import Sample, growth
from bettong.chaos.recovery import Arrival
from bettong.chaos.spec import OtherProcess, Spec, checked
from bettong.services import RECEIVER, SENDER

RUN_S = 3600.0


def samples(rise: float, *, noise: float = 0.05, seed: int = 1) -> list[Sample]:
    """A metric of 100 that rises by such a share over the run."""
    chance = random.Random(seed)
    return [
        Sample(float(at_s), 100 * (1 + rise * at_s / RUN_S) * (1 + chance.gauss(0, noise)))
        for at_s in range(0, int(RUN_S), 5)
    ]


@pytest.mark.parametrize("seed", range(5))
def test_a_flat_metric_is_shown_to_be_flat_and_a_rising_one_to_rise(seed: int) -> None:
    flat = growth(samples(0.0, seed=seed), RUN_S, least=1)
    rising = growth(samples(0.2, seed=seed), RUN_S, least=1)
    assert flat is not None
    assert rising is not None
    assert -0.1 < flat.low < 0 + 0.03
    assert flat.high < 0.1
    assert rising.low > 0.1
    assert rising.share == pytest.approx(0.2 / 1.1, abs=0.05)
    assert rising.median == pytest.approx(110, rel=0.03)


def test_the_beginning_and_short_disturbances_do_not_count() -> None:
    calm = samples(0.0)
    filling = [Sample(each.at_s, each.value * (0.1 if each.at_s < 300 else 1)) for each in calm]
    disturbed = [
        Sample(each.at_s, each.value * (50 if 60 <= each.at_s % 600 < 90 else 1)) for each in filling
    ]
    found = growth(disturbed, RUN_S, least=1)
    assert found is not None
    assert abs(found.share) < 0.05
    assert found.high < 0.1


def test_what_a_process_holds_for_a_while_is_no_growth_and_what_it_keeps_is() -> None:
    """A receiver with eight subscribers that did not read, for most of some stretches late in a run."""

    def held(leak: float) -> list[Sample]:
        return [
            Sample(1e9 + each.at_s, 2 * each.value * (1.3 if each.at_s % 900 > 780 else 1.0))
            for each in samples(leak, noise=0.01)
        ]

    spec = spec_with(memory=0.1)
    flat, leaking = (
        grown(spec, Followed([], {RECEIVER.name: held(leak)}, []), 1e9)[0] for leak in (0.0, 0.3)
    )
    assert flat.holds
    assert abs(flat.share) < 0.02
    assert not leaking.holds
    assert leaking.share > 0.2
    assert len(flat.points) == 20


def test_a_heap_of_java_may_fill_once_and_may_not_leak() -> None:
    """As Kafka's did: 200 MB until its next process filled its heap, 255 MB from then on."""

    def held(leak: float) -> list[Sample]:
        return [
            Sample(1e9 + each.at_s, 2 * each.value * (1.0 if each.at_s < 520 else 1.28))
            for each in samples(leak, noise=0.01)
        ]

    spec = spec_with(memory=0.1)
    followed = Followed([], {OtherProcess.KAFKA: held(0.0), OtherProcess.JVM: held(0.3)}, [])
    kafka, jvm = grown(spec, followed, 1e9)
    assert kafka.holds
    assert abs(kafka.share) < 0.02
    assert not jvm.holds
    assert jvm.share == pytest.approx(0.3 / 1.22, abs=0.05)
    (ours,) = grown(spec, Followed([], {SENDER.name: held(0.0)}, []), 1e9)
    assert not ours.holds


def test_a_spec_may_leave_out_the_part_of_the_run_in_which_processes_are_replaced() -> None:
    """Each new process begins with less: as a line through such a run, its memory rises though nobody's does."""

    def held(leak: float) -> list[Sample]:
        return [
            Sample(
                1e9 + each.at_s, each.value * (0.8 if each.at_s < RUN_S / 2 and each.at_s % 300 < 200 else 1)
            )
            for each in samples(leak, noise=0.01)
        ]

    flat, leaking = (Followed([], {SENDER.name: held(leak)}, []) for leak in (0.0, 0.3))
    (whole,) = grown(spec_with(memory=0.1), flat, 1e9)
    assert not whole.holds
    (later,) = grown(spec_with(memory=0.1, after=0.5), flat, 1e9)
    assert later.holds
    (leak,) = grown(spec_with(memory=0.1, after=0.5), leaking, 1e9)
    assert not leak.holds
    assert leak.share == pytest.approx(0.3 / 1.22, abs=0.05)


def test_a_run_that_is_too_noisy_does_not_show_that_nothing_grows() -> None:
    found = growth(samples(0.0, noise=3.0), RUN_S, least=1)
    assert found is not None
    assert found.high > 0.1


def test_nothing_that_becomes_little_is_no_growth() -> None:
    found = growth([Sample(float(at_s), at_s / RUN_S) for at_s in range(3600)], RUN_S, least=100)
    assert found is not None
    assert found.high < 0.02


def test_too_few_samples_say_nothing() -> None:
    assert growth([], RUN_S, least=1) is None
    assert growth([Sample(float(at_s), 1.0) for at_s in range(400, 1800)], RUN_S, least=1) is None


def spec_with(**bounds: float) -> Spec:
    return checked(
        {
            "name": "s",
            "duration_s": RUN_S,
            "workload": {"application": "app.py", "inputs": [{"source": "a", "file": "a.txt"}]},
            "invariants": {"growth_max": bounds},
        },
        "a test",
    )


def test_what_grows_beyond_its_bound_does_not_hold_and_what_has_none_does() -> None:
    start_s = 1e9
    followed = Followed(
        arrivals=[Arrival(start_s + at_s + 0.5 + at_s / RUN_S, start_s + at_s) for at_s in range(3600)],
        memory={SENDER.name: [Sample(start_s + each.at_s, each.value) for each in samples(0.0)]},
        lag=[Sample(start_s + each.at_s, 10 * each.value) for each in samples(0.5)],
    )
    reported = {each.metric: each for each in grown(spec_with(memory=0.1, latency=0.25), followed, start_s)}
    assert set(reported) == {"latency", "lag", "memory of sender"}
    assert reported["memory of sender"].holds
    assert not reported["latency"].holds
    assert reported["latency"].median == pytest.approx(1.05, abs=0.01)
    assert reported["lag"].bound is None
    assert reported["lag"].holds
    assert reported["lag"].low > 0.25
