"""Tumbling windows by bytewax: `python -m bytewax.run benchmarks.peers.bytewax.tumbling`."""

from datetime import timedelta

from bytewax.operators.windowing import TumblingWindower

from benchmarks.peers.bytewax.windows import EPOCH, counted
from benchmarks.peers.events import WINDOW_MS

flow = counted(
    "tumbling",
    TumblingWindower(length=timedelta(milliseconds=WINDOW_MS), align_to=EPOCH),
    lambda number: (number + 1) * WINDOW_MS,
)
