"""What `python -m benchmarks.peers` feeds to contestants, as frames, and the check of what they put out."""

from collections.abc import Iterator, Sequence

from benchmarks.peers.load import Load
from benchmarks.peers.race import check


def load_frames(of: Load, messages: int) -> Iterator[tuple[str, list[bytes]]]:
    """The records as frames of so many at most, in their order; all topics side by side."""
    records = of.opening + of.timed
    for start in range(0, len(records), messages):
        for topic in of.topics:
            values = [each.value for each in records[start : start + messages] if each.topic == topic]
            if values:
                yield topic, values


def judged(of: Load, outputs: Sequence[bytes]) -> None:
    """Raises RaceError where they are not the load's right results."""
    check(of.split(outputs), of.expected)
