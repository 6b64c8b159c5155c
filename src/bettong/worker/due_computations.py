"""Describes what of a computation waits for the watermark: a window, a join, a timer. Pure."""

from bettong.application.joins.joined import Joined
from bettong.application.nodes.computation import Computation
from bettong.application.windows.kinds import Ranges
from bettong.application.windows.windowed import Windowed
from bettong.event_progress import DueComputation, DueKind


def due_computation(node: Computation, due_ns: int) -> DueComputation:
    """Describes what a computation has due at `due_ns` by event time, or some time later."""
    if isinstance(node, Windowed):
        kind = node.windowing.kind
        if isinstance(kind, Ranges):
            end_ns = due_ns - kind.delay_ns
            return DueComputation(node.name, DueKind.WINDOW, due_ns, end_ns - kind.size_ns, end_ns)
        return DueComputation(node.name, DueKind.SESSION, due_ns)
    return DueComputation(node.name, DueKind.JOIN if isinstance(node, Joined) else DueKind.TIMER, due_ns)
