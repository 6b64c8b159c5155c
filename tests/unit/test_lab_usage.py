"""What is made of samples: memory of all at one time, by RSS and PSS, and CPU within a time of the run."""

from __future__ import annotations

from bettong.lab.measures import Measured, cpu_shares, usages
from bettong.lab.series import CORES, PSS
from bettong.lab.target.gc_pauses import GcPause
from bettong.lab.target.sampling import KindSample, Usage


def used(*samples: dict[str, tuple[float, float]]) -> Usage:
    """Of (MB, CPU seconds) by kind, one a second; the first at 0 s."""
    usage = Usage()
    for at_s, sample in enumerate(samples):
        kinds = {kind: KindSample(*each) for kind, each in sample.items()}
        usage.add_sample(kinds, float(at_s), 1.0 if at_s else 0.0)
    return usage


def test_memory_of_all_is_what_they_held_together_at_one_time() -> None:
    usage = used(
        {"kafka": (100.0, 0.0)}, {"kafka": (400.0, 0.0), "redis": (10.0, 0.0)}, {"redis": (200.0, 0.0)}
    )
    found = {each.metric: each.value for each in usages(usage, [], 0)}
    assert found == {
        "memory of all, at most": 410.0,
        "memory of kafka, at most": 400.0,
        "memory of redis, at most": 200.0,
    }


def test_pss_is_of_the_samples_in_which_that_of_every_kind_is_known() -> None:
    usage = Usage()
    for at_s, (kafka_mb, redis_mb) in enumerate([(90.0, 8.0), (None, None), (99.0, None), (80.0, 20.0)]):
        kinds = {"kafka": KindSample(400.0, 0.0, kafka_mb), "redis": KindSample(10.0, 0.0, redis_mb)}
        usage.add_sample(kinds, float(at_s), 1.0)
    found = {each.metric: each.value for each in usages(usage, [], 0)}
    assert found == {
        "memory of all, at most": 410.0,
        "memory of kafka, at most": 400.0,
        "memory of redis, at most": 10.0,
        "PSS of all, at most": 100.0,
        "PSS of kafka, at most": 90.0,
        "PSS of redis, at most": 20.0,
    }
    assert [(each.at_s, each.value) for each in usage.points if each.metric == f"redis: {PSS}"] == [
        (0.0, 8.0),
        (3.0, 20.0),
    ]


def test_cpu_counts_within_a_time_and_of_a_sample_that_is_partly_in_it_that_part() -> None:
    usage = used(*({"kafka": (1.0, spent_s), "redis": (1.0, 0.0)} for spent_s in (9.0, 0.1, 0.2, 0.4, 0.8)))
    assert round(usage.cpu_s()["kafka"], 6) == 1.5  # what was spent before the first sample is nobody's
    assert round(usage.cpu_s(1.0, 3.0)["kafka"], 6) == 0.6
    assert round(usage.cpu_s(1.5, 2.5)["kafka"], 6) == 0.3


def test_cpu_of_the_steps_is_a_share_of_a_core_of_all_and_of_each_that_spent_any() -> None:
    usage = used({}, *[{"kafka": (1.0, 0.25), "sender": (1.0, 0.5), "redis": (1.0, 0.0)}] * 4)
    assert cpu_shares(usage, 1.0, 3.0) == [
        Measured("CPU of all", "% of a core", 75.0),
        Measured("CPU of kafka", "% of a core", 25.0),
        Measured("CPU of sender", "% of a core", 50.0),
    ]
    assert cpu_shares(Usage(), 1.0, 3.0) == []


def test_what_counts_for_a_million_messages_is_there_where_there_were_messages() -> None:
    usage = used({"kafka": (1.0, 0.0)}, {"kafka": (1.0, 0.5)})
    usage.network_mb = 3.0
    pauses = [GcPause("kafka", 1.0, 4.0)]
    names = {each.metric for each in usages(usage, pauses, 500_000)} - {
        each.metric for each in usages(usage, pauses, 0)
    }
    assert names == {
        "CPU of all, a million messages",
        "CPU of kafka, a million messages",
        "network, a million messages",
    }


def test_a_sample_right_after_another_may_count_without_a_point_of_its_own() -> None:
    usage = used({"kafka": (1.0, 0.0)}, {"kafka": (1.0, 0.2)})
    usage.add_sample({"kafka": KindSample(1.0, 0.01)}, 1.02, 0.02, with_cores=False)
    cores = [(each.at_s, each.value) for each in usage.points if each.metric == f"kafka: {CORES}"]
    assert cores == [(1.0, 0.2)]
    assert round(usage.cpu_s()["kafka"], 6) == 0.21
