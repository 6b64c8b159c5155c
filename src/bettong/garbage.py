"""How often Python looks for garbage that counting references does not free."""

import gc

# Messages and results are many small objects that live for a frame. At Python's own thresholds (700, 10, 10) collecting
# took two thirds of a worker's time in the word count, and of a sender's that reads a topic. What a process may hold on
# to for longer is bounded: so many objects in cycles.
_THRESHOLDS = (100_000, 50, 1000)


def collect_rarely() -> None:
    """Leaves what lives now out of every later search, and searches new objects rarely. Call it when all is loaded."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
