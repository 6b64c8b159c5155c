"""A window that is open, and what holds it, as JSON can hold it: see `views`. Pure."""

from __future__ import annotations

from typing import Any

from bettong.inspection.open_windows import InputWatermark, OpenWindow


def window_view(window: OpenWindow) -> dict[str, Any]:
    """Times are Unix s."""
    hold = window.hold
    return {
        "stage": window.stage,
        "computation": window.computation,
        "kind": window.kind.value,
        "start_s": _seconds(window.start_ns),
        "end_s": _seconds(window.end_ns),
        "due_s": window.due_ns / 1e9,
        "short_s": window.short_s,
        "partitions": window.partitions,
        "partition": hold.id.partition,
        "watermark_s": _seconds(hold.watermark_ns or None),
        "waits_for": hold.waits_for.value,
        "waiting_records": hold.waiting_records,
        "held_by": _input(hold.input) if hold.input is not None else None,
    }


def _input(own: InputWatermark) -> dict[str, Any]:
    return {
        "source": own.source,
        "stream": own.stream,
        "is_of_stage": own.is_of_stage,
        "awaited": own.awaited,
        "watermark_s": _seconds(own.watermark_ns or None),
        "since_s": _seconds(own.since_ns),
        "at_least": own.at_least,
        "silent_s": own.silent_s,
        "idle_s": own.idle_s,
        "idle_at_s": _seconds(own.idle_at_ns),
    }


def _seconds(time_ns: int | None) -> float | None:
    return None if time_ns is None else time_ns / 1e9
