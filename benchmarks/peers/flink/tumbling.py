"""Tumbling windows by PyFlink."""

from benchmarks.peers.events import WINDOW_MS
from benchmarks.peers.flink.tables import count

WINDOWS = f"TUMBLE(TABLE events, DESCRIPTOR(happened), INTERVAL '{WINDOW_MS // 1000}' SECOND)"

if __name__ == "__main__":
    count("tumbling", WINDOWS)
