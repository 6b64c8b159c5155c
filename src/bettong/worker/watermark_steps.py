"""Where to divide a frame because the watermark rises: what was due before a late message has to fire before it. Pure.

Normally what is due fires between records. For a message that is not late it does not matter when: nothing that
concerns it was due by the watermark before it. For one that is late it does, so the fold of a frame stops before it, as
if the frame had been cut there.
"""

from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from bettong.application.timers import NEVER
from bettong.frames.columns import Array
from bettong.worker.batch import Batch

# See `Operator.soonest_due`.
SoonestDue = Callable[[Array], Array | None]


class WatermarkStep(NamedTuple):
    """Before `row` the watermark rises to `watermark_ns`, from that of the step before.

    `soonest_ns`: a lower bound of when the rows since the step before make something due. `judged_ns`: by that
    watermark what fires here is judged late; None: by that of the step before.
    """

    row: int
    watermark_ns: int
    soonest_ns: int
    judged_ns: int | None = None


def watermark_steps(
    batch: Batch,
    reached_ns: int,
    soonest_due: Sequence[SoonestDue],
    *,
    due_ns: int = NEVER,
    at_each: bool = False,
) -> list[WatermarkStep]:
    """The rises of the watermark within a frame's rows that matter. By `reached_ns` everything due has fired.

    `soonest_due`: of all computations to which something may become due by the watermark. `at_each`: also before rows
    that are not late, where something may be due by then; `due_ns`: a lower bound of when what was there before is due.
    """
    if batch.watermarks is None or batch.watermarks.are_one:
        return []
    watermarks, times = batch.message_watermarks(), batch.event_times()
    soonest = _soonest(times, soonest_due)
    if at_each:
        rises = _rises(watermarks, reached_ns)
        rows = rises[_may_be_due(rises, watermarks, soonest, due_ns)]
    else:
        late = np.flatnonzero(times < watermarks)
        rows = late[_rises(watermarks[late], reached_ns)]
    if not len(rows):
        return []
    begins = [0, *rows[:-1].tolist()]
    running = np.maximum.accumulate(np.concatenate(([reached_ns], watermarks)))
    return [
        WatermarkStep(
            row,
            int(watermarks[row]),
            int(soonest[begin:row].min(initial=NEVER)),
            # The watermark before the previous message, which has moved it to where it is.
            int(running[row]) if at_each else None,
        )
        for begin, row in zip(begins, rows.tolist(), strict=True)
    ]


def _rises(watermarks: Array, reached_ns: int) -> Array:
    """Where the watermark is higher than ever before."""
    return np.flatnonzero(np.diff(np.maximum.accumulate(watermarks), prepend=reached_ns) > 0)


def _may_be_due(rises: Array, watermarks: Array, soonest: Array, due_ns: int) -> Array:
    """By rise, whether something may be due by it before the next one: from before the frame, or from rows up to there.

    `due_ns` may be too early, and differ after a restart. So it may decide whether a frame is folded in two parts at a
    rise, never at which row of those that have one watermark: what `local` combines must not differ.
    """
    before = np.minimum.accumulate(np.concatenate(([due_ns], soonest[:-1])))
    last = np.append(rises[1:], len(watermarks)) - 1
    return np.asarray(before[last] <= watermarks[rises])


def _soonest(times: Array, soonest_due: Sequence[SoonestDue]) -> Array:
    """By row, a lower bound of when it makes something due."""
    found = np.full(len(times), NEVER, np.int64)
    for each in soonest_due:
        bounds = each(times)
        if bounds is None:
            return np.zeros(len(times), np.int64)
        np.minimum(found, bounds, out=found)
    return found
