"""Sliding windows by bytewax: `python -m bytewax.run benchmarks.peers.bytewax.sliding`."""

from datetime import timedelta

from bytewax.operators.windowing import SlidingWindower

from benchmarks.peers.bytewax.windows import EPOCH, counted
from benchmarks.peers.events import SIZE_MS, SLIDE_MS

flow = counted(
    "sliding",
    SlidingWindower(
        length=timedelta(milliseconds=SIZE_MS), offset=timedelta(milliseconds=SLIDE_MS), align_to=EPOCH
    ),
    lambda number: number * SLIDE_MS + SIZE_MS,
)
