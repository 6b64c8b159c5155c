"""What a peer that takes Bettong's frames does with one before the rule: it reads the messages as Bettong reads them.

Needs no package of a peer, nor Bettong's edges, so that every environment can import it.
"""

from collections.abc import Iterator

from benchmarks.peers.market import Row
from benchmarks.workload import planned
from bettong.frames.columns import Columns
from bettong.frames.frame import decode

_SCHEMAS = {source.name: source.schema for source in planned().sources}


def symbols_and_rows(record: bytes) -> Iterator[tuple[bytes, Row]]:
    """Each message of a frame behind its symbol, in the order of the frame. Raises FrameError."""
    frame = decode(record)
    schema = _SCHEMAS[frame.stream]
    columns = [column.tolist() for column in Columns.of_payload(schema, frame.columns or b"").columns]
    return zip(columns[schema.position("symbol")], zip(*columns, strict=True), strict=True)
