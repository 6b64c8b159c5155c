"""Where a frame is folded in parts, when the watermark before each of its messages matters."""

import numpy as np
import pytest

from bettong.frames.columns import Columns
from bettong.worker.batch import Batch
from bettong.worker.event_times import EventTimes
from bettong.worker.message_watermarks import MessageWatermarks
from bettong.worker.watermark_steps import watermark_steps
from tests.samples.lateness import Reading, judging

AT = [100, 100, 110, 110, 120]
WATERMARKS = [50, 50, 60, 60, 70]


@pytest.mark.parametrize(("due_ns", "rows"), [(0, [0, 2, 4]), (60, [2, 4]), (10**9, [])])
def test_a_frame_is_cut_where_the_watermark_rises_and_only_where_something_may_be_due(
    due_ns: int, rows: list[int]
) -> None:
    readings = [Reading(1, number, at) for number, at in enumerate(AT)]
    columns = Columns.of_messages(judging().sources[0].schema, readings)
    batch = Batch.of_frame(judging().stages[0].inputs[0], columns).at(EventTimes.of(np.array(AT)))
    watched = batch.judged_by(MessageWatermarks(0, np.array(WATERMARKS)))
    found = watermark_steps(watched, 0, [lambda times_ns: times_ns + 10**6], due_ns=due_ns, at_each=True)
    assert [step.row for step in found] == rows
