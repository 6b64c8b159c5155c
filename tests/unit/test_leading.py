"""Who leads, over any order of looks, deaths, pauses and losses of Redis."""

import time

import hypothesis.strategies as st
import pytest
import structlog
from hypothesis.stateful import RuleBasedStateMachine, initialize, precondition, rule

from bettong_processor.leading import TTL_MS, VACANT_S, Candidate, Leading
from tests.simulation.lease_model import MemoryLease
from tests.waiting import eventually

_POLLS_S = st.sampled_from([0.05, 0.25, 0.3, 0.6, 2.5])


class Lead:
    """As Redis keeps it (`RedisLead`)."""

    def __init__(self) -> None:
        self.lease = MemoryLease()

    def hold(self, process: str, now_s: float, *, take: bool) -> str:
        self.lease.hold(process, TTL_MS, now_s * 1000, if_free=take)
        return self.lease.holder(now_s * 1000)[0]


class Leaders(RuleBasedStateMachine):
    """Three processes that look at one lead now and then."""

    def __init__(self) -> None:
        super().__init__()
        self.now_s = 0.0
        self.lead = Lead()
        self.processes = {name: Candidate(name, ready=True) for name in "abc"}
        self.polled_s = dict.fromkeys("abc", float("-inf"))
        self.lives = 0

    @initialize(name=st.sampled_from("abc"))
    def begins(self, name: str) -> None:
        self.poll(name, 0.0)
        self.poll(name, VACANT_S)
        assert self.processes[name].leads

    @rule(name=st.sampled_from("abc"), later_s=_POLLS_S)
    def poll(self, name: str, later_s: float) -> None:
        """A process that polls as often as it should is never overtaken while Redis keeps its data."""
        self.now_s += later_s
        candidate = self.processes[name]
        in_time = candidate.leads and self.now_s - self.polled_s[name] < TTL_MS / 1000
        take = candidate.may_take(self.now_s)
        leader = self.lead.hold(candidate.process, self.now_s, take=take)
        candidate.observe(leader, self.now_s)
        self.polled_s[name] = self.now_s
        assert candidate.leads == (leader == candidate.process)
        assert candidate.leads or not in_time

    @rule(name=st.sampled_from("abc"))
    def dies_and_comes_back(self, name: str) -> None:
        self.lives += 1
        self.processes[name] = Candidate(f"{name}/{self.lives}", ready=True)
        self.polled_s[name] = float("-inf")

    @precondition(lambda self: sum(each.leads for each in self.processes.values()) <= 1)
    @rule()
    def redis_loses_its_data(self) -> None:
        """Whoever leads has it back: it may take it at once, the others look twice before.

        Of two that both believe to lead, for one was paused, the first one to look has it.
        """
        self.lead = Lead()
        leader = next((name for name, each in self.processes.items() if each.leads), None)
        for name in (each for each in self.processes if each != leader):
            if not self.processes[name].may_take(self.now_s + 0.05):
                self.poll(name, 0.05)
        if leader is not None and self.now_s - self.polled_s[leader] < TTL_MS / 1000:
            self.poll(leader, 0.05)
            assert self.processes[leader].leads


TestLeaders = Leaders.TestCase


def test_a_lead_that_nobody_has_is_taken_only_after_a_while() -> None:
    candidate = Candidate("a", ready=True)
    candidate.observe("", 0.0)
    assert not candidate.may_take(VACANT_S / 2)
    candidate.observe("b", VACANT_S / 2)
    candidate.observe("", VACANT_S)
    assert not candidate.may_take(1.4 * VACANT_S)
    assert candidate.may_take(2 * VACANT_S)


def test_who_is_not_ready_leaves_the_lead_to_others_and_takes_it_at_once_when_ready() -> None:
    candidate = Candidate("a")
    candidate.observe("", 0.0)
    assert not candidate.may_take(10 * VACANT_S)
    candidate.ready = True
    assert candidate.may_take(10 * VACANT_S)


def test_a_thread_that_ends_by_what_nobody_foresaw_is_reported_where_the_lead_is_asked_for() -> None:
    class Garbled:
        def hold(self, process: str, *, take: bool) -> str:
            raise ValueError(f"{process} {take}")

        def release(self, _: str) -> None: ...

    with Leading(Garbled(), "here", clock=time.monotonic, log=structlog.get_logger()) as leading:
        with pytest.raises(ValueError, match="here/"):
            eventually(lambda: leading.wait(0.01))
        with pytest.raises(ValueError, match="here/"):
            assert leading.leads
