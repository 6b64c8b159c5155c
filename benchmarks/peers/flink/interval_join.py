"""The interval join by PyFlink, which has it in SQL alone."""

from pyflink.common import Row

from benchmarks.peers.events import BOUND_MS, LEFT, PAIR, RIGHT
from benchmarks.peers.flink.tables import run

BOUND = f"INTERVAL '{BOUND_MS // 1000}' SECOND"
PAIRS = f"""
    SELECT l.id, l.amount, r.amount FROM left_events l JOIN right_events r
    ON l.id = r.id AND l.happened BETWEEN r.happened - {BOUND} AND r.happened + {BOUND}
"""  # noqa: S608 - of our own constants


def encode(pair: Row) -> bytes:
    """A result."""
    return PAIR.pack(*pair)


def main() -> None:
    """Runs until the process is ended."""
    run("interval-join", {"left_events": LEFT, "right_events": RIGHT}, PAIRS, encode)
