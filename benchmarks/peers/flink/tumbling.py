"""Tumbling windows by PyFlink."""

from benchmarks.peers.events import WINDOW_MS
from benchmarks.peers.flink.tables import count

WINDOWS = f"TUMBLE(TABLE events, DESCRIPTOR(happened), INTERVAL '{WINDOW_MS // 1000}' SECOND)"


def main() -> None:
    """Runs until the process is ended."""
    count("tumbling", WINDOWS)
