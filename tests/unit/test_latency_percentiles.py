"""Latencies by percentile: what receivers tell, within 1 %, and what is shown of several of them."""

from __future__ import annotations

import json
import random

import pytest

from bettong.inspection.latency_curves import latency_curves, p999_ms
from bettong.latency_parts import PARTS, PartsOfLate
from bettong.latency_percentiles import SHARES, LatencyPercentiles, ranks
from bettong_receiver.latency import Latency

NS = 10**9


def percentiles(latency: Latency, sink: str) -> LatencyPercentiles:
    return LatencyPercentiles.parse(str(latency.percentiles()[f"latency_percentiles/{sink}"]))


def test_each_percentile_is_within_one_percent_of_the_latency_that_it_stands_for() -> None:
    drawn = random.Random(7)
    latencies_ns = sorted(int(10**6 * drawn.lognormvariate(1, 2)) for _ in range(5000))
    latency = Latency(["a", "b"], monotonic_s=lambda: 0.0)
    for each in drawn.sample(latencies_ns, k=len(latencies_ns)):
        latency.record("a", sent_ns=NS, delivered_ns=NS + each, messages=1)
    found = percentiles(latency, "a")
    assert found.messages == 5000
    for share, within_ms, rank in zip(SHARES, found.within_ms, ranks(5000), strict=True):
        assert rank == max(1, -(-round(5000 * share * 10**6) // 10**6))
        assert within_ms == pytest.approx(latencies_ns[rank - 1] / 10**6, rel=0.01, abs=0.002)
    assert list(found.within_ms) == sorted(found.within_ms)
    assert "latency_percentiles/b" not in latency.percentiles()
    assert p999_ms([{"latency_percentiles/a": found.to_text()}], "a") == found.within_ms[SHARES.index(0.999)]


def test_one_message_is_every_percentile() -> None:
    latency = Latency(["a"], monotonic_s=lambda: 0.0)
    latency.record("a", sent_ns=NS, delivered_ns=NS + 5_000_000, messages=1)
    found = percentiles(latency, "a")
    assert (found.messages, len(set(found.within_ms))) == (1, 1)


@pytest.mark.parametrize(
    "text",
    ["", "{}", "[]", "[1]", "null", "[1,2,3]", json.dumps([1, *[-1] * len(SHARES)]), "[" * 9999]
    + [
        json.dumps([messages, *[value] * len(SHARES)])
        for messages, value in ((1, "a"), ("b", 1), (None, 1), (0, 1))
    ]
    + [f"[1{',NaN' * len(SHARES)}]", f"[1{',1e999' * len(SHARES)}]"],
)
def test_what_is_no_percentiles_in_a_record_is_left_out(text: str) -> None:
    with pytest.raises(ValueError, match="no latency by percentile"):
        LatencyPercentiles.parse(text)
    record = {"latency_percentiles/a": text}
    assert (latency_curves([record]), p999_ms([record], "a")) == ((), None)


def test_of_several_receivers_the_slowest_counts_at_each_percentile_and_in_each_part() -> None:
    def record(messages: int, slow: float, *, parts: bool) -> dict[str, str]:
        within = [slow * (index + 1) for index in range(len(SHARES))]
        of_late = PartsOfLate(messages, [0.1] * 5, [1.0] * 5, [within] * 5 if parts else ())
        return {
            "latency_percentiles/a": LatencyPercentiles(messages, within).to_text(),
            "latency_parts/a": of_late.to_text(),
        }

    (curve,) = latency_curves([record(10, 1.0, parts=True), record(5, 2.0, parts=True)])
    assert (curve.sink, curve.messages, curve.within_ms[0]) == ("a", 15, 2.0)
    assert [each.part for each in curve.parts] == [part.words for part in PARTS]
    assert all(each.within_ms == curve.within_ms for each in curve.parts)
    (older,) = latency_curves([record(5, 2.0, parts=False)])
    assert older.parts == ()


@pytest.mark.parametrize(
    "within", [[[1.0]], [[1.0] * len(SHARES)], "ab", [None] * 5, [["a"] * len(SHARES)] * 5]
)
def test_percentiles_of_parts_that_are_none_are_refused(within: object) -> None:
    text = json.dumps({"messages": 1, "sums_s": [0.1] * 5, "p99_ms": [1.0] * 5, "within_ms": within})
    with pytest.raises(ValueError, match=r"percentiles|parts|convert"):
        PartsOfLate.parse(text)
