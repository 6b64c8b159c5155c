"""Times of computations are what a clock says, in all frames together, and their quantiles within 1 %."""

import random
from dataclasses import dataclass

import pytest

from bettong.worker.stopwatch import OWN_WORK, ComputationTimes, Stopwatch, times_of

US = 1_000
S = 1_000_000_000


@dataclass
class Clock:
    """A clock that stands until it is moved."""

    now_ns: int = 0

    def __call__(self) -> int:
        return self.now_ns


class Watched:
    """A stopwatch and its clock."""

    def __init__(self) -> None:
        self.clock = Clock()
        self.watch = Stopwatch(self.clock)

    def frame(self, **took_ns: int) -> None:
        """One frame, whose computations take that long; 10 us go to the worker's own work."""
        is_timed = self.watch.begin()
        self.clock.now_ns += 10 * US
        for computation, each_ns in took_ns.items():
            if is_timed:
                self.watch.enter(computation)
            self.clock.now_ns += each_ns
        self.watch.end()

    def found(self) -> dict[str, ComputationTimes]:
        """Its report after some time."""
        self.clock.now_ns += 5 * S
        return dict(times_of(self.watch.text()))


def test_the_times_of_computations_add_up_to_that_of_all_frames() -> None:
    watched = Watched()
    for _ in range(50):
        watched.frame(first=900 * US, second=3090 * US)
    found = watched.found()
    assert found[OWN_WORK].busy_s == pytest.approx(50 * 10e-6)
    assert found["first"].busy_s == pytest.approx(50 * 900e-6)
    assert found["second"].busy_s == pytest.approx(50 * 3090e-6)
    assert found["second"].busy_share == pytest.approx(50 * 3090e-6 / 5.2, abs=1e-4)


def test_frames_that_come_at_once_are_told_from_few_of_them() -> None:
    watched = Watched()
    for _ in range(10_000):
        watched.frame(first=30 * US, second=60 * US)
    found = watched.found()
    assert found["first"].busy_s == pytest.approx(10_000 * 30e-6, rel=0.01)
    assert found["second"].busy_s == pytest.approx(10_000 * 60e-6, rel=0.01)
    timed = sum(watched.watch._newest["second"].values())
    assert 450 <= timed <= 500  # of a second


def test_work_that_a_computation_is_given_twice_in_a_frame_is_one_time() -> None:
    watched = Watched()
    watched.watch.begin()
    for computation in ("windows", "sums", "windows"):
        watched.watch.enter(computation)
        watched.clock.now_ns += 100 * US
    watched.watch.end()
    found = watched.found()
    assert found["windows"].max_us == pytest.approx(200, rel=0.01)
    assert found["sums"].max_us == pytest.approx(100, rel=0.01)


def test_quantiles_are_within_one_percent() -> None:
    watched, chance = Watched(), random.Random(7)
    took = [round(10 ** chance.uniform(3, 9)) for _ in range(20_000)]
    for each_ns in took:
        watched.frame(of=each_ns)
        watched.clock.now_ns += 2_000 * US  # so that each is timed
        if watched.clock.now_ns > 20 * S:  # and none is forgotten
            watched.watch._stretch_due_ns = watched.clock.now_ns + S
    found, took = watched.found()["of"], sorted(took)
    for share, each_us in ((0.5, found.p50_us), (0.99, found.p99_us), (0.999, found.p999_us)):
        assert each_us * US == pytest.approx(took[round(share * len(took)) - 1], rel=0.01)
    assert found.p9999_us * US == pytest.approx(took[-3], rel=0.01)
    assert found.max_us * US == pytest.approx(took[-1], rel=0.01)


def test_what_was_slow_once_is_forgotten_after_a_minute() -> None:
    watched = Watched()
    watched.frame(of=S)
    assert watched.found()["of"].max_us == pytest.approx(1e6, rel=0.01)
    for _ in range(12):
        watched.found()
        watched.frame(of=US)
    assert watched.found()["of"].max_us == pytest.approx(1, rel=0.01)
    assert watched.found()["of"].busy_s > 1


def test_nothing_is_timed_outside_a_frame_and_idle_partitions_say_the_same_again() -> None:
    watched = Watched()
    watched.frame(of=US)
    watched.watch.enter("a snapshot")
    watched.clock.now_ns += S
    for _ in range(14):
        watched.found()
    found = watched.found()
    assert set(found) == {OWN_WORK, "of"}
    assert found == watched.found()
    assert found["of"] == ComputationTimes(1e-6, 0.0)


GARBAGE = [
    "",
    "[]",
    "7",
    '{"of": 7}',
    '{"of": ["x"]}',
    '{"of": [1,2,3,4,5,6,7,8]}',
    '{"of": [NaN, 1]}',
    '{"of": [1e999, 1]}',
    '{"of": [1' + "0" * 400 + ", 1]}",
    "[" * 100_000,
]


@pytest.mark.parametrize("text", GARBAGE)
def test_what_another_version_says_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match=r".+"):
        times_of(text)
