"""The word count by PyFlink, whose results are there at once, and come again after a fault."""

from benchmarks.peers.flink.word_count import run

CHECKPOINT_MS = 1000


def main() -> None:
    """See `run`."""
    run("at-least-once", CHECKPOINT_MS)
