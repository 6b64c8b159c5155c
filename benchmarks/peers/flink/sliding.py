"""Sliding windows by PyFlink, which calls them hopping."""

from benchmarks.peers.events import SIZE_MS, SLIDE_MS
from benchmarks.peers.flink.tables import count

SLIDE, SIZE = (f"INTERVAL '{each_ms // 1000}' SECOND" for each_ms in (SLIDE_MS, SIZE_MS))
WINDOWS = f"HOP(TABLE events, DESCRIPTOR(happened), {SLIDE}, {SIZE})"


def main() -> None:
    """Runs until the process is ended."""
    count("sliding", WINDOWS)
