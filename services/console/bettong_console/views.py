"""The data of pages, for JSON: numbers with their unit in their name, None for unknown ones. Pure.

Every view has `status`, which is shown at the top of each place. The page only decides how a number looks.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict
from typing import Any, TypeVar

from bettong.inspection.accounts import differences, shown
from bettong.inspection.flow_graph import FlowGraph
from bettong.inspection.latency_curves import LatencyCurve, latency_curves
from bettong.inspection.latency_parts import SinkParts
from bettong.inspection.measures import Measures, PartitionMeasures, StageMeasures
from bettong.inspection.open_windows import open_windows
from bettong.inspection.overall_state import overall_state
from bettong.inspection.overview import stands_still
from bettong.inspection.slowest_part import heavy_partitions, slowest_part
from bettong.inspection.unmeasured import MeasureKind
from bettong.inspection.watermark_form import open_window_status
from bettong.latency_percentiles import SHARES
from bettong.topics import DEAD_LETTERS
from bettong_console.board import Board, Known

# Enough for a table; of more partitions, those furthest behind are sent.
PARTITIONS_MAX = 1_000
_CHANGES_MAX = 100
_HOT_KEYS_MAX = 3
# Enough for an overview; `bettong status --latency` has all.
_SINKS_MAX = 4

View = dict[str, Any]
OfSink = TypeVar("OfSink", SinkParts, LatencyCurve)


def description(application: str, graph: FlowGraph, objective_p99_ms: float | None) -> View:
    """The data that does not change while the console runs."""
    return {"application": application, "objective_p99_ms": objective_p99_ms, **asdict(graph)}


def summary(board: Board, known: Known, now_s: float) -> View:
    """The landing page."""
    overview, measured = known.moment.found.overview, known.measured
    return _head(known, now_s) | {
        "measures": _measures(measured),
        "totals": {
            "messages": overview.messages,
            "results": overview.results,
            "dead_letters": overview.dead_letters,
            "skipped": overview.skipped,
        },
        "needs": [asdict(need) for need in known.needs()],
        "latency_parts": [_parts(each) for each in _ordered(overview.latency_parts)[:_SINKS_MAX]],
        "latency_parts_measured": _is_measured(known, MeasureKind.LATENCY_PARTS),
        "sinks_left_out": max(0, len(overview.latency_parts) - _SINKS_MAX),
        "services": [
            {
                "name": row.name,
                "state": row.state,
                "since_s": row.since_s,
                "detail": row.detail,
                "unheard_s": row.unheard_s,
            }
            for row in known.now.services
        ],
        "stages": [_stage(each) for each in measured.stages],
        "changes": [asdict(each) for each in board.changes[:-4:-1]],
    }


def application(board: Board, known: Known, now_s: float) -> View:
    """The graph's numbers."""
    del board
    slowest = slowest_part(known.measured)
    return _head(known, now_s) | {
        "measures": _measures(known.measured),
        "sources": [asdict(each) for each in known.measured.sources],
        "stages": [_stage(each) for each in known.measured.stages],
        "sinks": [asdict(each) for each in known.measured.sinks],
        "computations": [asdict(each) for each in known.moment.found.computations],
        "computations_measured": _is_measured(known, MeasureKind.COMPUTATIONS),
        "flows": [asdict(each) for each in known.measured.flows],
        "senders_held_share": known.measured.senders_held_share,
        "latency_shares": SHARES,
        "latency_curves": [
            asdict(each) for each in _ordered(latency_curves(known.moment.answers.live.values()))
        ],
        "slowest": asdict(slowest) if slowest is not None else None,
    }


def partitions(board: Board, known: Known, now_s: float) -> View:
    """Partitions, of many those furthest behind; and the slots that hold them."""
    del board
    rows = known.measured.partitions
    windows = open_windows(known.moment.found.partitions, int(known.moment.time_s * 1e9))
    if len(rows) > PARTITIONS_MAX:
        rows = tuple(sorted(rows, key=_trouble, reverse=True)[:PARTITIONS_MAX])
    return _head(known, now_s) | {
        "total": len(known.measured.partitions),
        "rows": [_partition(each) for each in rows],
        "heavy": [asdict(each) for each in heavy_partitions(known.measured)[:3]],
        "workers": _workers(known.measured),
        "hot_keys_measured": _is_measured(known, MeasureKind.HOT_KEYS),
        "windows": [open_window_status(each).model_dump() for each in windows],
    }


def accounts(board: Board, known: Known, now_s: float) -> View:
    """What became of messages: a line for each input, computation and output, as in `bettong status --accounts`."""
    del board
    lines = shown(known.accounts)
    return _head(known, now_s) | {
        "lines": [asdict(line) | {"adds_up": not line.differences} for line in lines],
        "differences": differences(lines),
    }


def events(board: Board, known: Known, now_s: float) -> View:
    """Changes since the console started, the newest first; `complete_since_s`: since when they are complete."""
    recent = board.changes[: -_CHANGES_MAX - 1 : -1]
    first_s = board.first_s if board.first_s is not None else now_s
    return _head(known, now_s) | {
        "changes": [asdict(each) for each in recent],
        "complete_since_s": max(first_s, recent[-1].at_s) if len(board.changes) > _CHANGES_MAX else first_s,
        "dead_letters": known.moment.found.overview.dead_letters,
    }


VIEWS: Mapping[str, Callable[[Board, Known, float], View]] = {
    "summary": summary,
    "application": application,
    "partitions": partitions,
    "accounts": accounts,
    "events": events,
}


def _head(known: Known, now_s: float) -> View:
    overall = overall_state(known.now, known.measured)
    return {
        "status": {
            "application": known.moment.found.application,
            "level": overall.level,
            "word": overall.word,
            "reason": overall.reason,
            "time_s": known.moment.time_s,
            "now_s": now_s,
            "away": known.now.unknown,
        }
    }


def _is_measured(known: Known, measure: MeasureKind) -> bool:
    return measure not in known.moment.found.not_measured


def _measures(measured: Measures) -> View:
    names = ("in_per_s", "out_per_s", "lag", "lag_s", "p50_ms", "p99_ms", "max_ms")
    return {name: getattr(measured, name) for name in names}


def _ordered(sinks: Sequence[OfSink]) -> list[OfSink]:
    """The sinks in their order, with dead letters last."""
    return sorted(sinks, key=lambda each: each.sink == DEAD_LETTERS)


def _parts(sink: SinkParts) -> View:
    """The parts of a sink's latency, as in `bettong status --latency`."""
    return {
        "sink": sink.sink,
        "messages": sink.messages,
        "mean_ms": sink.mean_ms,
        "largest": sink.largest.part.words,
        "parts": [
            {"part": row.part.words, "mean_ms": row.mean_ms, "share": row.share, "p99_ms": row.p99_ms}
            for row in sink.parts
        ],
    }


def _stage(each: StageMeasures) -> View:
    row = each.row
    return {
        "stage": row.stage,
        "partitions": row.partitions,
        "messages_per_s": each.trend.messages_per_s,
        "results_per_s": each.results_per_s,
        "lag": row.lag,
        "lag_s": each.lag_s,
        "p50_ms": each.p50_ms,
        "p99_ms": each.p99_ms,
        "keys": row.keys,
        "state_bytes": row.state_bytes,
        "late": row.late,
        "partly_late": row.partly_late,
        "dead_letters": row.dead_letters,
        "skipped": row.skipped,
        "watermark_ns": each.watermark_ns,
        "watermark_partition": each.watermark_partition,
        "watermark_held_by": each.watermark_held_by,
        "held_share": each.held_share,
    }


def _partition(each: PartitionMeasures) -> View:
    row = each.row
    return {
        "stage": row.stage,
        "partition": row.partition,
        "slot": row.slot,
        "offset": row.offset,
        "lag": row.lag,
        "lag_s": each.lag_s,
        "stalled_s": row.stalled_s if row.stalled_s is not None and math.isfinite(row.stalled_s) else None,
        "stands_still": stands_still(row),
        "nobody_folds": row.stalled_s == math.inf,
        "messages": row.messages,
        "messages_per_s": each.trend.messages_per_s,
        "share": each.share,
        "p50_ms": each.p50_ms,
        "p99_ms": each.p99_ms,
        "keys": row.keys,
        "hot_keys": [asdict(each) for each in row.hot_keys[:_HOT_KEYS_MAX]],
        "state_bytes": row.state_bytes,
        "snapshot": asdict(row.snapshot) if row.snapshot is not None else None,
        "snapshot_fault": row.snapshot_fault,
        "unsaved_records": each.unsaved_records,
        "watermark_s": row.watermark_ns / 1e9 if row.watermark_ns else None,
        "watermark_held_by": row.watermark_held_by,
        "held_s": each.trend.held.seconds if each.trend.held is not None else None,
        "late": row.late,
        "partly_late": row.partly_late,
        "dead_letters": row.dead_letters,
        "fault": row.fault,
    }


def _workers(measured: Measures) -> list[View]:
    """The slots that hold partitions, by number; none under the micro-batch schedule, which has no owners."""
    slots: dict[int, list[PartitionMeasures]] = {}
    for each in measured.partitions:
        if each.row.slot is not None:
            slots.setdefault(each.row.slot, []).append(each)
    return [_worker(slot, own) for slot, own in sorted(slots.items())]


def _worker(slot: int, own: list[PartitionMeasures]) -> View:
    rates = [rate for each in own if (rate := each.trend.messages_per_s) is not None]
    busy = [each.busy_share for each in own if each.busy_share is not None]
    return {
        "slot": slot,
        "partitions": len(own),
        "messages_per_s": sum(rates) if rates else None,
        "busy_share": sum(busy) if busy else None,
        "lag": sum(each.row.lag or 0 for each in own),
        "p99_ms": max((each.p99_ms for each in own if each.p99_ms is not None), default=None),
        "keys": sum(each.row.keys for each in own),
        "cpus": max((each.cpus for each in own if each.cpus is not None), default=None),
    }


def _trouble(each: PartitionMeasures) -> tuple[bool, float, int]:
    return stands_still(each.row), each.lag_s or 0.0, each.row.lag or 0
