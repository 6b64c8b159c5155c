"""The windows of a computation, by their kind."""

from bettong.application.windows.kinds import Ephemeral, Ranges, Sessions
from bettong.application.windows.windowing import Windowing
from bettong.worker.windows.counts import CountWindows
from bettong.worker.windows.ephemeral import EphemeralWindows
from bettong.worker.windows.ranges import RangeWindows
from bettong.worker.windows.sessions import SessionWindows
from bettong.worker.windows.window_rows import KeyWindows


def key_windows(windowing: Windowing) -> KeyWindows:
    """The windows of all keys of one partition, none of them open."""
    kind = windowing.kind
    if isinstance(kind, Ranges):
        return RangeWindows(kind, windowing)
    if isinstance(kind, Sessions):
        return SessionWindows(kind, windowing)
    if isinstance(kind, Ephemeral):
        return EphemeralWindows(kind, windowing)
    return CountWindows(kind, windowing)
