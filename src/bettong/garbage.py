"""When Python looks for garbage that counting references does not free."""

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


class CollectionPaused:
    """Python's collector waits within `with`, and is afterwards as it was.

    For the fold of a frame: it would look at the frame's results again and again, and what it could free is little, for
    messages and results are gone when their frame is through.
    """

    __slots__ = ("_collects",)

    def __enter__(self) -> None:
        self._collects = gc.isenabled()
        gc.disable()

    def __exit__(self, *_: object) -> None:
        if self._collects:
            gc.enable()
