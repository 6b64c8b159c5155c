"""Recovery: from the end of a fault to the first result of a message that was due after it."""

from bettong.chaos.nemeses import Injected
from bettong.chaos.recovery import Arrival, FaultSpan, Recovery, median_and_max, newest_first_seen, recoveries
from bettong.chaos.report import FaultReport, by_kind, fault_report, unmet_recoveries
from bettong.chaos.timetable import PlannedFault


def at(*pairs: tuple[float, float]) -> list[Arrival]:
    return newest_first_seen(Arrival(at_s, due_s) for at_s, due_s in pairs)


def test_results_of_older_messages_do_not_count() -> None:
    arrivals = at((9, 8.9), (12, 9.5), (12.5, 9.9), (13, 10.5), (14, 13.9))
    assert recoveries([FaultSpan(10, 10)], arrivals) == [Recovery(3.0, alone=True)]


def test_only_arrivals_that_bring_something_newer_are_kept() -> None:
    assert at((3, 2), (1, 0), (4, 1.5), (5, 2)) == [Arrival(1, 0), Arrival(3, 2)]


def test_a_pause_is_recovered_from_after_its_end() -> None:
    assert recoveries([FaultSpan(10, 14)], at((13, 12), (15, 14.5))) == [Recovery(1.0, alone=True)]


def test_a_fault_that_nothing_newer_follows_has_no_recovery() -> None:
    assert recoveries([FaultSpan(10, 10)], at((11, 9))) == [Recovery(None, alone=True)]


def test_faults_that_meet_are_not_alone() -> None:
    arrivals = at((9, 8), (16, 11), (17, 13), (30, 29), (41, 40.5))
    found = recoveries([FaultSpan(10, 10), FaultSpan(12, 12), FaultSpan(25, 25), FaultSpan(40, 40)], arrivals)
    assert [(each.seconds, each.alone) for each in found] == [(6, False), (5, False), (5, True), (1, True)]


def test_median_and_maximum_of_a_kind_are_of_faults_that_no_other_met() -> None:
    assert median_and_max([]) is None
    fault = PlannedFault(1, 1.0, "kill", ("sender",), 0.0, 0.0, 0.5)
    pairs = [
        (Recovery(2.0, alone=True), ""),
        (Recovery(4.0, alone=True), ""),
        (Recovery(90.0, alone=False), ""),
    ]
    faults = [fault_report(Injected(fault, 1, 1, missed=missed), recovery, 0) for recovery, missed in pairs]
    faults.append(fault_report(Injected(fault, 1, 1, missed="not there"), None, 0))
    (kind,) = by_kind(faults)
    assert (kind.kind, kind.injected, kind.missed, kind.measured, kind.together) == (
        "kill sender",
        3,
        1,
        2,
        1,
    )
    assert (kind.recovery_p50_s, kind.recovery_max_s) == (3.0, 4.0)


def done(number: int, kind: str, recovery: Recovery | None) -> FaultReport:
    """A fault at ten times its number of seconds; without a recovery it was missed."""
    deed, target = kind.split()
    fault = PlannedFault(number, 0.0, deed, (target,), 0.0, 0.0, 0.5)
    missed = "" if recovery is not None else "not there"
    return fault_report(Injected(fault, 100.0 + 10 * number, 0.0, missed=missed), recovery, 100.0)


def test_what_took_longer_than_a_spec_allows_is_named_with_when_and_how_long() -> None:
    faults = [
        done(1, "kill processor", Recovery(5.0, alone=True)),
        done(2, "kill processor", Recovery(5.613, alone=True)),
        done(3, "kill processor", Recovery(90.0, alone=False)),
        done(4, "kill spark-jvm", Recovery(None, alone=True)),
        done(5, "kill sender", Recovery(90.0, alone=True)),
    ]
    assert unmet_recoveries(faults, {"kill processor": 5.0, "kill spark-jvm": 4.5}) == [
        "kill processor, #2 at 20.0 s: recovered after 5.61 s, at most 5 s are allowed",
        "kill spark-jvm, #4 at 40.0 s: not recovered from, at most 4.5 s are allowed",
    ]
    assert unmet_recoveries(faults, {}) == []


def test_a_bound_on_what_was_not_measured_is_not_kept() -> None:
    faults = [
        done(1, "kill kafka", Recovery(1.0, alone=True)),
        done(2, "kill redis", Recovery(1.0, alone=False)),
        done(3, "kill sender", None),
    ]
    bounds = dict.fromkeys(("kill kafka", "kill redis", "kill sender", "kill postman"), 5.0)
    assert unmet_recoveries(faults, bounds) == [
        f"{kind}: recovery within 5 s is not proved: no such fault was injected alone"
        for kind in ("kill redis", "kill sender", "kill postman")
    ]
