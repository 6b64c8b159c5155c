"""The ring buffers of the last day: bounded, with holes between inspections, and with peaks kept."""

from __future__ import annotations

import json
import math
from collections.abc import Collection

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong_console.history import SERIES_MAX, SPANS, History, HistoryStretch, Span
from bettong_console.history_texts import HistoryTexts

T0 = 1_800_000_000


def values(history: History, span: str, now_s: float, name: str) -> list[float | None]:
    return list(history.stretch(SPANS[span], now_s).values.get(name, []))


def test_each_second_has_its_value_and_a_second_without_one_is_a_hole() -> None:
    history = History()
    for second in (0, 1, 2, 6, 7):
        history.add(T0 + second, {"lag_s": float(second)})
    assert values(history, "5m", T0 + 7, "lag_s")[-8:] == [0.0, 1.0, 2.0, None, None, None, 6.0, 7.0]


def test_a_look_that_came_late_is_no_hole() -> None:
    history = History()
    history.add(T0, {"lag_s": 1.0})
    history.add(T0 + 3, {"lag_s": 4.0})
    assert values(history, "5m", T0 + 3, "lag_s")[-4:] == [1.0, 4.0, 4.0, 4.0]


def test_where_looks_are_rare_each_stands_for_the_time_since_the_one_before() -> None:
    history = History()
    history.add(T0, {"lag_s": 1.0}, every_s=10)
    history.add(T0 + 10, {"lag_s": 4.0}, every_s=10)
    history.add(T0 + 30, {"lag_s": 5.0}, every_s=10)
    found = values(history, "5m", T0 + 30, "lag_s")[-31:]
    assert found == [1.0, *[4.0] * 10, *[None] * 19, 5.0]


def test_a_longer_step_has_the_mean_of_a_rate_and_the_greatest_of_all_else() -> None:
    history = History()
    for second, value in enumerate((10.0, 20.0, 60.0)):
        history.add(T0 + second, {"in_per_s": value, "p99_ms": value})
    assert values(history, "1h", T0 + 2, "in_per_s")[-1] == pytest.approx(30.0)
    assert values(history, "1h", T0 + 2, "p99_ms")[-1] == 60.0


def test_time_that_passes_without_a_look_moves_values_out_of_the_span() -> None:
    history = History()
    history.add(T0, {"lag_s": 1.0})
    assert values(history, "5m", T0 + 299, "lag_s")[0] == 1.0
    assert set(values(history, "5m", T0 + 300, "lag_s")) == {None}
    history.add(T0 + 10_000, {"lag_s": 2.0})
    assert values(history, "5m", T0 + 10_000, "lag_s") == [*[None] * 299, 2.0]


@given(
    st.lists(
        st.tuples(st.integers(0, 2000), st.floats(allow_nan=True, allow_infinity=True) | st.none()),
        max_size=60,
    )
)
def test_any_times_and_values_leave_spans_of_their_length_with_finite_values(
    looks: list[tuple[int, float | None]],
) -> None:
    history = History()
    newest = T0
    for second, value in looks:
        history.add(T0 + second, {"p99_ms": value})
        newest = max(newest, T0 + second)
        for span in SPANS.values():
            found = history.stretch(span, newest).values.get("p99_ms")
            if found is not None:
                assert len(found) == span.values
                assert all(each is None or math.isfinite(each) for each in found)


def test_series_are_bounded_and_those_that_are_dropped_are_counted() -> None:
    history = History()
    history.add(T0, {f"sink/{number}/p99_ms": 1.0 for number in range(SERIES_MAX + 7)})
    assert len(history.stretch(SPANS["5m"], T0).values) == SERIES_MAX
    assert history.dropped == 7
    history.add(T0 + 1, {"another": 1.0})
    assert len(history.stretch(SPANS["1d"], T0 + 1).values) == SERIES_MAX


def test_a_series_is_written_once_a_look_in_five_digits_and_anew_when_time_passes() -> None:
    read: list[str] = []

    class Watched(History):
        def stretch(self, span: Span, now_s: float, names: Collection[str] | None = None) -> HistoryStretch:
            read.extend(names or ())
            return super().stretch(span, now_s, names)

    history = Watched()
    history.add(T0, {"lag_s": 1.23456789, "p99_ms": 1_234_567.0})
    texts = HistoryTexts(history)

    def last(now_s: float, *names: str, version: int = 1) -> dict[str, float | None]:
        found = json.loads(texts.text(SPANS["5m"], names, version=version, now_s=now_s))
        assert found["first_s"] == int(now_s) - 299
        return {name: each[-1] for name, each in found["series"].items()}

    assert last(T0, "lag_s") == {"lag_s": 1.2346}
    assert last(T0 + 0.5, "lag_s", "p99_ms") == {"lag_s": 1.2346, "p99_ms": 1_234_600}
    assert read == ["lag_s", "p99_ms"]
    history.add(T0, {"lag_s": 9.0})
    assert last(T0, "lag_s", version=2) == {"lag_s": 9.0}
    assert last(T0 + 1, "lag_s", version=2) == {"lag_s": None}


def test_series_that_have_no_value_any_more_make_room() -> None:
    history = History()
    history.add(T0, {"old": 1.0})
    for second in range(300, 700):
        history.add(T0 + second, {"new": 1.0})
    assert list(history.stretch(SPANS["5m"], T0 + 700).values) == ["new"]
