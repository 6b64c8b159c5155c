"""The watermark of a partition: checked against a model that looks at every origin each time."""

from __future__ import annotations

from typing import Literal
from unittest.mock import patch

from hypothesis import given
from hypothesis import strategies as st

from bettong.frames.frame import CLOCK_NS_MAX
from bettong.identifiers import Origin
from bettong.worker.watermarks import OriginClock, Watermarks

IDLE_NS: dict[str, int | None] = {"fast": 100, "slow": 1000, "patient/stage": None}
ORIGINS = ["fast/a", "fast/b", "slow/a", "slow/b", "patient/stage/0", "strange/a", "patient/gone/0"]

Kind = Literal["reach", "hear", "end", "fall", "pass"]
Operation = tuple[Kind, str, int, int]


def table(**known: int) -> Watermarks:
    return Watermarks(IDLE_NS, **known)  # type: ignore[arg-type]


class Model:
    """The rule, word by word."""

    def __init__(self) -> None:
        self.watermark = self.reached = self.log = 0
        self.origins: dict[str, list[int]] = {}

    def pass_time(self, log: int) -> None:
        while idle := [each for each in self.idle() if each[0] <= log]:
            at, origin = min(idle)
            self.move_on(at)
            del self.origins[origin]
            self.settle()
        self.move_on(log)

    def idle(self) -> list[tuple[int, str]]:
        found = []
        for origin, (_, heard) in self.origins.items():
            timeout = IDLE_NS[origin.rpartition("/")[0]]
            if timeout is not None:
                found.append((heard + timeout, origin))
        return found

    def move_on(self, log: int) -> None:
        if not self.origins and self.watermark:
            self.watermark += max(log - self.log, 0)
        self.log = max(self.log, log)

    def settle(self) -> None:
        lowest = min((watermark for watermark, _ in self.origins.values()), default=0)
        if lowest > self.watermark:
            self.watermark = self.reached = lowest

    def do(self, kind: Kind, origin: str, value: int) -> None:
        known = self.origins.get(origin) if kind != "pass" else None
        if kind == "end":
            self.origins.pop(origin, None)
        elif kind == "fall":
            if known is not None and known[0] <= value:
                known[0] = value
                self.settle()
                del self.origins[origin]
        elif known is not None:
            known[1] = self.log
            if kind == "reach":
                known[0] = max(known[0], value)
        elif kind == "reach" and origin.rpartition("/")[0] in IDLE_NS:
            self.origins[origin] = [value, self.log]
        self.settle()


def do(of: Watermarks, kind: Kind, origin: str, value: int) -> None:
    if kind == "reach":
        of.reach(Origin(origin), value)
    elif kind == "hear":
        of.hear(Origin(origin))
    elif kind == "end":
        of.end(Origin(origin))
    elif kind == "fall":
        of.fall_idle(Origin(origin), value)


def known(of: Watermarks) -> dict[str, list[int]]:
    return {origin: [clock.watermark_ns, clock.heard_ns] for origin, clock in of.origins}


def again(of: Watermarks, log_ns: int) -> Watermarks:
    """As restored from a snapshot."""
    origins = {origin: OriginClock(clock.watermark_ns, clock.heard_ns) for origin, clock in of.origins}
    watermark_ns, reached_ns = of.watermark_ns, of.reached_ns
    return Watermarks(
        IDLE_NS, log_ns=log_ns, watermark_ns=watermark_ns, reached_ns=reached_ns, origins=origins
    )


operations = st.lists(
    st.tuples(
        st.sampled_from(["reach", "reach", "reach", "hear", "end", "fall", "pass"]),
        st.sampled_from(ORIGINS),
        st.integers(0, 3000),
        st.sampled_from([0, 0, 1, 30, 99, 100, 101, 700, 2500]),
    ),
    max_size=60,
)


@given(operations, st.randoms(use_true_random=False))
def test_the_table_is_the_model_also_over_crashes_and_with_more_records_in_between(
    found: list[Operation], chance: object
) -> None:
    model, straight, log = Model(), table(), 0
    crashing, ticked = table(), table()
    for kind, origin, value, passed in found:
        before = straight.watermark_ns
        for between in range(log, log + passed, max(1, passed // 3)):
            ticked.pass_time(between)
        log += passed
        for each in (model, straight, crashing, ticked):
            each.pass_time(log)
        model.do(kind, origin, value)
        for each in (straight, crashing, ticked):
            do(each, kind, origin, value)
        assert straight.watermark_ns >= before
        for each in (straight, crashing, ticked):
            assert (each.watermark_ns, each.reached_ns) == (model.watermark, model.reached)
            assert known(each) == model.origins
            assert each.is_live == bool(model.origins)
            assert each.idle_ns == min((at for at, _ in model.idle()), default=None)
            for asked in ORIGINS:
                others = (clock[0] for name, clock in model.origins.items() if name != asked)
                is_known = asked.rpartition("/")[0] in IDLE_NS
                assert each.others_ns(Origin(asked)) == (min(others, default=CLOCK_NS_MAX) if is_known else 0)
        if chance.random() < 0.3:  # type: ignore[attr-defined]
            crashing = again(crashing, log)


def test_the_lowest_live_origin_decides() -> None:
    of = table()
    of.pass_time(1)
    of.reach(Origin("slow/a"), 50)
    of.reach(Origin("slow/b"), 20)
    assert of.watermark_ns == 50, "it never goes back"
    of.reach(Origin("slow/a"), 90)
    assert of.watermark_ns == 50
    of.reach(Origin("slow/b"), 70)
    assert of.watermark_ns == 70
    of.end(Origin("slow/b"))
    assert of.watermark_ns == 90


def test_an_origin_whose_watermark_is_not_known_yet_holds_it_while_it_is_live() -> None:
    of = table()
    of.reach(Origin("slow/a"), 0)
    of.reach(Origin("patient/stage/0"), 500)
    assert of.watermark_ns == 0
    of.pass_time(999)
    assert of.watermark_ns == 0
    of.pass_time(1000)
    assert of.watermark_ns == 500


def test_with_no_live_origin_it_moves_on_as_much_as_the_log_clock_from_the_moment_on_when_the_last_one_fell_idle() -> (
    None
):
    of = table()
    of.pass_time(10)
    of.reach(Origin("fast/a"), 5000)
    of.pass_time(109)
    assert of.watermark_ns == 5000
    of.pass_time(210)
    assert (of.watermark_ns, of.reached_ns) == (5100, 5000)
    of.pass_time(CLOCK_NS_MAX)
    assert of.watermark_ns == CLOCK_NS_MAX


def test_an_unknown_watermark_does_not_move_on() -> None:
    of = table()
    of.reach(Origin("fast/a"), 0)
    of.pass_time(5000)
    assert not of.is_live
    assert of.watermark_ns == 0


def test_memory_is_that_of_live_origins() -> None:
    of = table()
    for log_ns in range(20_000):
        of.pass_time(log_ns)
        of.reach(Origin(f"fast/{log_ns % 7}"), log_ns)
        of.end(Origin(f"fast/{(log_ns - 3) % 7}"))
        of.reach(Origin(f"fast/once-{log_ns}"), log_ns)
    assert len(known(of)) <= 110
    assert max(map(len, (of._lowest, of._idle))) < 400


def test_of_too_many_origins_the_one_heard_of_longest_ago_is_forgotten() -> None:
    with patch("bettong.worker.watermarks.ORIGINS_MAX", 3):
        of = table()
        for log_ns, name in enumerate("abcad"):
            of.pass_time(log_ns)
            of.reach(Origin(f"patient/stage/{name}"), 10 + log_ns)
        assert [origin for origin, _ in of.origins] == [
            "patient/stage/c",
            "patient/stage/a",
            "patient/stage/d",
        ]
        assert of.watermark_ns == 12
