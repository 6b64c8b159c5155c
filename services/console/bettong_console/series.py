"""The numbers with a history, by name: `WHAT` of the application, `stage/NAME/WHAT`, `sink/NAME/WHAT`. Pure.

`WHAT` ends with its unit; `_per_s` are rates.
"""

from __future__ import annotations

from collections.abc import Iterator

from bettong.inspection.measures import Measures

Values = dict[str, float | None]


def series_of(measured: Measures) -> Values:
    """All series, those of the application first: these are kept where there is no room for all."""
    return dict(_values(measured))


def _values(measured: Measures) -> Iterator[tuple[str, float | None]]:
    for name in ("in_per_s", "out_per_s", "lag_s", "p50_ms", "p99_ms", "max_ms"):
        yield name, getattr(measured, name)
    yield "lag_records", measured.lag
    for stage in measured.stages:
        start = f"stage/{stage.row.stage}"
        yield f"{start}/messages_per_s", stage.trend.messages_per_s
        yield f"{start}/results_per_s", stage.results_per_s
        yield f"{start}/lag_records", stage.row.lag
        yield f"{start}/p50_ms", stage.p50_ms
        yield f"{start}/p99_ms", stage.p99_ms
        if stage.watermark_ns:
            yield f"{start}/watermark_behind_s", max(0.0, measured.time_s - stage.watermark_ns / 1e9)
    for sink in measured.sinks:
        yield f"sink/{sink.sink}/messages_per_s", sink.messages_per_s
        for name in ("p50_ms", "p99_ms", "max_ms"):
            yield f"sink/{sink.sink}/{name}", getattr(sink, name)
