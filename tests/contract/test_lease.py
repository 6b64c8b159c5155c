"""The one lease, in a real Redis and in the model that simulations use: any calls in any order, the same answers.

Who leads, who feeds a stream and which task a slot has are held by it; that they use it as they should is shown by
tests/integration/test_lead.py, tests/contract/test_leases.py and tests/integration/test_resident_membership.py.
"""

import time
from collections.abc import Callable, Iterator

import hypothesis.strategies as st
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import RuleBasedStateMachine, rule, run_state_machine_as_test
from redis import Redis

from bettong.edges.redis_store.lease import LEASE
from bettong.local.redis_server import RedisServer
from tests.simulation.lease_model import MemoryLease
from tests.waiting import eventually

LONG_MS = 60_000
NAMES = st.sampled_from(["1", "2", "3"])

HOLD = f"{LEASE} return hold(KEYS[1], ARGV[1], ARGV[2], ARGV[3] == '1', ARGV[4] == '1') and 1 or 0"
RELEASE = f"{LEASE} return release(KEYS[1], ARGV[1])"
HOLDER = f"{LEASE} local name, left = holder_of(KEYS[1]) return {{name or '', left}}"


class Lease:
    """The operations of scripts, one script per call."""

    def __init__(self, client: Redis, key: str) -> None:
        self.client = client
        self.key = key

    def hold(self, name: str, length_ms: int, *, if_free: bool, if_held: bool = False) -> bool:
        return bool(self.client.eval(HOLD, 1, self.key, name, length_ms, int(if_free), int(if_held)))

    def release(self, name: str) -> bool:
        return bool(self.client.eval(RELEASE, 1, self.key, name))

    def holder(self) -> tuple[str, int]:
        name, left_ms = self.client.eval(HOLDER, 1, self.key)
        return name.decode(), left_ms


@pytest.fixture
def lease(redis_server: RedisServer, unique_name: Callable[..., str]) -> Iterator[Lease]:
    with Redis.from_url(redis_server.url) as client:
        yield Lease(client, unique_name("lease"))


class Both(RuleBasedStateMachine):
    """Calls both. The model's clock stands still: how time passes is what `runs_out` and another test are about."""

    lease: Lease

    def __init__(self) -> None:
        super().__init__()
        self.model = MemoryLease()
        self.now_ms = 0.0
        self.lease.client.delete(self.lease.key)

    @rule(name=NAMES, if_free=st.booleans(), if_held=st.booleans())
    def hold(self, name: str, *, if_free: bool, if_held: bool) -> None:
        before, _ = self.model.holder(self.now_ms)
        done = self.lease.hold(name, LONG_MS, if_free=if_free, if_held=if_held)
        assert done is self.model.hold(name, LONG_MS, self.now_ms, if_free=if_free, if_held=if_held)
        assert done is (before == name or (if_held if before else if_free))
        self.is_the_same()

    @rule(name=NAMES)
    def release(self, name: str) -> None:
        before, _ = self.model.holder(self.now_ms)
        done = self.lease.release(name)
        assert done is self.model.release(name, self.now_ms) is (before == name)
        self.is_the_same()

    @rule()
    def runs_out(self) -> None:
        self.lease.client.pexpire(self.lease.key, 0)
        self.now_ms = max(self.now_ms, self.model.until_ms)
        self.is_the_same()

    def is_the_same(self) -> None:
        name, left_ms = self.lease.holder()
        assert name == self.model.holder(self.now_ms)[0]
        assert (0.5 * LONG_MS < left_ms <= LONG_MS) if name else left_ms == 0


def test_redis_and_the_model_give_the_same_answers_to_any_calls(lease: Lease) -> None:
    Both.lease = lease
    run_state_machine_as_test(
        Both,
        settings=settings(
            max_examples=50, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
        ),
    )


def test_a_lease_runs_out_by_itself_when_it_is_not_renewed_and_not_before(lease: Lease) -> None:
    begun_s = time.monotonic()
    assert lease.hold("1", 300, if_free=True)
    eventually(lambda: lease.hold("2", LONG_MS, if_free=True), what="the lease runs out")
    assert time.monotonic() - begun_s >= 0.29
    assert not lease.hold("1", LONG_MS, if_free=True), "who comes late finds another"
    assert not lease.release("1")
    assert lease.holder()[0] == "2"


def test_a_renewal_counts_from_when_it_is_carried_out_also_when_it_shortens(lease: Lease) -> None:
    lease.hold("1", LONG_MS, if_free=True)
    assert lease.hold("1", LONG_MS // 2, if_free=False)
    assert LONG_MS // 4 < lease.holder()[1] <= LONG_MS // 2
