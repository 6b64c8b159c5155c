"""BETTONG_MEASURES=off: nothing says where time goes, and whatever is counted stays."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import structlog

from bettong import metrics
from bettong.frames.frame import Frame
from bettong.identifiers import NO_SEQUENCE, Origin, PartitionId, SequenceNumber
from bettong.inspection.unmeasured import MeasureKind, unmeasured
from bettong.latency import LatencyCounts
from bettong.worker.stage_program import program
from bettong_processor.programs import Programs
from bettong_processor.reporting import metrics_of
from bettong_processor.restoring import Restoring, WorkerLimits
from bettong_receiver.delivery.connector import FrameMessages, MovingPosition, SinkBatch
from bettong_receiver.delivery.observations import DeliveryObserver
from bettong_receiver.positions import PositionKey
from bettong_receiver.progress import DeliveryProgress, SinkPartition
from tests.samples.worker import FRAME_BYTES_MAX, Reading, data, meters
from tests.simulation.crash_guards import guard

SILENT = structlog.wrap_logger(structlog.ReturnLogger(), processors=[])
FRAMES = 200


def folded(folder: Path, *, measures: bool) -> tuple[dict[str, Any], list[bytes]]:
    """What a worker's record says of some frames, and what these led to."""
    planned = meters()
    stage = planned.stages[0]
    programs = Programs(planned, {each.name: program(each, compiled=False) for each in planned.stages})
    restoring = Restoring(programs, WorkerLimits(1, FRAME_BYTES_MAX, measures), SILENT)
    own = restoring.fresh(PartitionId(stage.name, 0))
    fold = replace(guard(folder), measures=measures).of(own)
    found: list[bytes] = []
    for offset in range(FRAMES):
        value = data("readings/feed", offset + 1, [Reading("m", offset)] * 64)
        found += [each.value for each in fold(offset, value)]
    return metrics_of(own), found


def test_a_worker_that_measures_nothing_counts_all_the_same_and_puts_out_the_same(tmp_path: Path) -> None:
    measured, results = folded(tmp_path / "on", measures=True)
    plain, same_results = folded(tmp_path / "off", measures=False)
    assert results == same_results
    of_time = {metrics.TIMES.name, metrics.HOT_KEYS.name, metrics.HOT_KEY_SHARE.name}
    assert all(measured[name] for name in of_time)
    assert not any(plain[name] for name in of_time)
    assert {name: value for name, value in plain.items() if name not in of_time} == {
        name: value for name, value in measured.items() if name not in of_time
    }


def delivered() -> dict[bool, dict[str, float | str]]:
    """What receivers say of a frame that they have delivered, by whether they measure parts of its latency."""
    sent_ns = 1_700_000_000_000_000_000
    frame = Frame(
        origin=Origin("raw/in/0"), sequence=SequenceNumber(1), previous=NO_SEQUENCE, sent_ns=sent_ns
    )
    key = SinkPartition("raw", 0)
    moving = MovingPosition(PositionKey("app", *key), DeliveryProgress.fresh(0))
    batch = SinkBatch[bytes](key, [FrameMessages(0, frame, [b"x"] * 5, bytes(16))], moving)
    found = {}
    for with_parts in (True, False):
        observer = DeliveryObserver(["raw"], clock_ns=lambda: sent_ns + 5_000_000, with_parts=with_parts)
        observer.observe([batch], 0.001)
        found[with_parts] = observer.metrics()
    return found


def test_a_receiver_that_measures_nothing_knows_the_latency_and_not_its_parts() -> None:
    found = delivered()
    assert sum(LatencyCounts.parse(str(found[False]["latency/raw"])).counts) == 5
    parts = [name for name in found[True] if name.startswith("latency_part")]
    assert len(parts) == 6
    assert found[False] == {name: value for name, value in found[True].items() if name not in parts}


def test_what_is_not_measured_is_known_from_what_services_say_and_nothing_else_is(tmp_path: Path) -> None:
    folds = {on: texts(folded(tmp_path / str(on), measures=on)[0]) for on in (True, False)}
    receives = {on: {metrics.MESSAGES.name: "5", **texts(found)} for on, found in delivered().items()}
    assert unmeasured([receives[True]], [folds[True]]) == ()
    assert unmeasured([receives[False]], [folds[True]]) == (MeasureKind.LATENCY_PARTS,)
    assert unmeasured([receives[True]], [folds[False]]) == (MeasureKind.COMPUTATIONS, MeasureKind.HOT_KEYS)
    idle = {name: text for name, text in receives[True].items() if not name.startswith("latency_parts/")}
    assert unmeasured([idle], [folds[True]]) == (), "nothing came of late"
    assert unmeasured([idle], [folds[False]]) == tuple(MeasureKind), "parts need the times of workers"
    assert unmeasured([receives[False]], [folds[False]]) == tuple(MeasureKind)
    assert unmeasured([receives[False]], [folds[False], folds[True]]) == (MeasureKind.LATENCY_PARTS,)
    # Before the first frame, of a receiver that has not begun, and of who is not there, nobody knows.
    assert unmeasured([{metrics.STATE.name: "starting"}], [{metrics.SNAPSHOT_OFFSET.name: "3"}]) == ()
    assert unmeasured([], []) == ()


def texts(found: dict[str, Any]) -> dict[str, str]:
    """As they lie in Redis."""
    return {name: str(value) for name, value in found.items()}
