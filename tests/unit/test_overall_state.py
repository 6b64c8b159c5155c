"""Whether a deployment is alive, in a word; what needs a person; where it is slow."""

from __future__ import annotations

import pytest

from bettong.hot_keys import HotKey, HotKeys
from bettong.identifiers import PartitionId
from bettong.inspection.accounts import AccountLine
from bettong.inspection.measures import TimedInspection
from bettong.inspection.overall_state import Level, needs, overall_state
from bettong.inspection.slowest_part import heavy_partitions, slowest_part
from bettong.latency_parts import PartsOfLate
from tests.samples.deployments import Partitions, measured, moment, partition, services

S0, S1 = PartitionId("s", 0), PartitionId("s", 1)


def two(**metrics: object) -> Partitions:
    return {**partition("s", 0, **metrics), **partition("s", 1, **metrics)}


def word(*moments: TimedInspection) -> tuple[Level, str]:
    found = overall_state(moments[-1].found, measured(*moments))
    return found.level, found.word


def stalled(seconds: float) -> TimedInspection:
    live = services(processor={"stalled_s/s/1": seconds, "lag": 5}, receiver={"lag": 0})
    return moment(10, live, two(offset=5, messages=5), waiting={S1: 7})


def test_all_that_runs_and_moves_is_running() -> None:
    before = moment(0, services(sender={"messages": 0}), two(offset=0, messages=0))
    now = moment(5, services(sender={"messages": 9}, receiver={"lag": 0}), two(offset=5, messages=5))
    assert word(before, now) == (Level.GOOD, "Running")
    assert needs(now.found, measured(before, now)) == []


def test_nothing_that_comes_is_idle_and_no_alarm() -> None:
    live = services(sender={"messages": 9}, receiver={"lag": 0})
    assert word(moment(0, live, two(offset=5)), moment(5, live, two(offset=5))) == (Level.GOOD, "Idle")


def test_no_record_of_any_service_is_down() -> None:
    now = moment(0, {}, {})
    assert word(now) == (Level.BAD, "Down")
    assert len(needs(now.found, measured(now))) == 3


def test_a_service_that_is_gone_or_silent_is_named() -> None:
    gone = {name: record for name, record in services().items() if name != "receiver"}
    silent = services(receiver={"age_s": 8.0})
    for live, named in ((gone, "receiver: down"), (silent, "receiver: silent")):
        now = moment(0, live, two(offset=5))
        found = overall_state(now.found, measured(now))
        assert found.word == "Degraded"
        assert named in found.reason
        assert needs(now.found, measured(now))[0].level is Level.BAD


def test_a_service_that_is_late_is_unsure_before_it_counts_as_silent_and_a_late_write_is_nothing() -> None:
    words = {}
    for age_s in (0.6, 1.2, 1.3, 2.9, 3.1):
        live = services(processor={"lag": 0}, receiver={"lag": 0}, sender={"age_s": age_s, "messages": 1})
        now = moment(5, live, two(offset=5))
        words[age_s] = word(now)[1]
        assert now.found.goes_on is (age_s < 3)  # who asks for an exit code waits until it is sure
    assert words[0.6] == words[1.2] not in {"Unsure", "Degraded"}
    assert (words[1.3], words[2.9], words[3.1]) == ("Unsure", "Unsure", "Degraded")
    now = moment(5, services(processor={"lag": 0}, sender={"age_s": 2.9}, receiver={"lag": 0}), two(offset=5))
    assert overall_state(now.found, measured(now)).reason == "sender: no report for 2.9 s"
    (need,) = needs(now.found, measured(now))
    assert (need.level, need.what) == (Level.NOTICE, "sender: no report for 2.9 s")


def test_a_partition_that_stands_still_is_named_with_its_lag() -> None:
    now = stalled(12)
    assert word(now) == (Level.BAD, "Stands still")
    assert overall_state(now.found, measured(now)).reason == "1 of 2 partitions does not move"
    (need,) = needs(now.found, measured(now))
    assert "s/1 stands still at offset 5" in need.what
    assert "7 records wait" in need.what
    slowest = slowest_part(measured(now))
    assert slowest is not None
    assert (slowest.name, slowest.why.partition(";")[0]) == ("s", "partition 1 stands still, for 12 s")


def test_a_record_that_waits_for_long_is_behind_and_its_stage_the_slowest_part() -> None:
    live = services(receiver={"lag": 0}, processor={"lag": 0})
    looks = [moment(at, live, two(offset=5 + at, messages=5 + at), waiting={S0: 400}) for at in (0, 15, 30)]
    assert word(*looks) == (Level.NOTICE, "Behind")
    slowest = slowest_part(measured(*looks))
    assert slowest is not None
    assert slowest.why == "400 records wait in its log, the oldest for 30.0 s"
    assert slowest.remedy
    assert [need.level for need in needs(looks[-1].found, measured(*looks))] == [Level.NOTICE]


def test_without_lag_the_greatest_latency_is_slowest_and_nothing_is_wrong() -> None:
    def at(time_s: float, count: int) -> TimedInspection:
        live = services(receiver={"messages/out": count, "latency_p99_ms/out": 30.0})
        records = {
            **partition("s", 0, offset=count, messages=count, latency_p99_ms=4.0),
            **partition("t", 0, offset=count, messages=count, latency_p99_ms=9.0),
        }
        return moment(time_s, live, records)

    slowest = slowest_part(measured(at(0, 1), at(5, 50)))
    assert slowest is not None
    assert (slowest.kind, slowest.name, slowest.remedy) == ("sink", "out", "")
    assert "30.0 ms, of which the slowest stage takes 9.0 ms" in slowest.why


@pytest.mark.parametrize(
    ("sums_s", "slowest", "share"),
    [
        ([0.1, 1.2, 0.3, 0.2, 0.2], ("stage", "t"), "60% of it log to worker"),
        ([0.1, 0.2, 1.2, 0.3, 0.2], ("stage", "t"), "60% of it inside worker"),
        ([0.1, 0.2, 0.3, 1.2, 0.2], ("sink", "out"), "60% of it log to receiver"),
        ([0.1, 0.2, 0.2, 0.3, 1.2], ("sink", "out"), "60% of it receiver to sink"),
        ([1.2, 0.2, 0.3, 0.2, 0.1], ("source", "in"), "60% of it client to log"),
    ],
)
def test_where_the_parts_of_the_latency_are_known_the_largest_says_what_is_slowest(
    sums_s: list[float], slowest: tuple[str, str], share: str
) -> None:
    parts = {
        "latency_parts/out": PartsOfLate(100, sums_s, [1.0] * 5).to_text(),
        # Nobody waits for dead letters.
        "latency_parts/dead-letters": PartsOfLate(1, [0.0, 0.0, 0.0, 0.0, 9.0], [1.0] * 5).to_text(),
    }
    live = services(sender={"decoding/in": 0}, receiver={"latency_p99_ms/out": 90.0, **parts})
    records = {**partition("s", 0, latency_p99_ms=4.0), **partition("t", 0, latency_p99_ms=9.0)}
    found = slowest_part(measured(moment(0, live, records)))
    assert found is not None
    assert (found.kind, found.name, found.remedy) == (*slowest, "")
    assert found.why == f"results of out take 20.0 ms on average from client to delivery, {share}"


def test_nothing_measured_has_no_slowest_part() -> None:
    assert slowest_part(measured(moment(0, services(), {}))) is None


def test_a_partition_with_many_times_its_share_is_skewed() -> None:
    def at(time_s: float, *counts: int) -> TimedInspection:
        records: Partitions = {}
        for number, count in enumerate(counts):
            records |= partition("s", number, offset=count, messages=count)
        return moment(time_s, services(), records)

    found = heavy_partitions(measured(at(0, 0, 0, 0, 0), at(1, 970, 10, 10, 10)))
    assert [(each.partition, round(each.times, 2)) for each in found] == [(0, 3.88)]
    assert heavy_partitions(measured(at(0, 0, 0, 0, 0), at(1, 7, 1, 0, 0))) == []  # too few to say


def test_many_partitions_that_stand_still_are_counted_not_listed() -> None:
    records: Partitions = {}
    for number in range(50):
        records |= partition("s", number, offset=1)
    stalls = {f"stalled_s/s/{number}": 9 for number in range(50)}
    now = moment(0, services(processor={"lag": 1, **stalls}), records, waiting=dict.fromkeys(records, 1))
    found = [need.what for need in needs(now.found, measured(now))]
    assert len(found) == 4
    assert found[-1] == "47 more partitions stand still"


def test_accounts_that_do_not_add_up_need_a_person_the_first_ones_by_name() -> None:
    before = moment(0, services(sender={"messages": 0}), two(offset=0, messages=0))
    now = moment(5, services(sender={"messages": 9}, receiver={"lag": 0}), two(offset=5, messages=5))
    texts = [f"double took {number} messages, and accounts for 1" for number in range(5)]
    line = AccountLine("s", "computation", "double", 9, 9, 9, None, 0, 0, 0, 0, None, tuple(texts))
    found = needs(now.found, measured(before, now), [line])
    assert {need.level for need in found} == {Level.BAD}
    assert found[0].what == f"the accounts do not add up: s, {texts[0]}"
    assert found[-1].what == "2 more differences"


def test_a_key_that_is_too_much_for_a_partition_needs_a_person() -> None:
    hot = HotKeys(1000, (HotKey("ann", 0.99, 0.98),)).to_text()
    records = {**partition("s", 0, messages=900, hot_keys=hot), **partition("s", 1, messages=100)}
    now = moment(5, services(receiver={"lag": 0}), {**records, **partition("s", 2), **partition("s", 3)})
    (need,) = needs(now.found, measured(now))
    assert need.level is Level.NOTICE
    assert "s/0: key 'ann' has 88% of the messages of its stage" in need.what
