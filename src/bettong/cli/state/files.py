"""States as files: a line of JSON each, or Parquet."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from bettong.inspection.states import KeyState

_ROWS_A_GROUP = 10_000


def write_lines(path: Path, found: Iterator[KeyState]) -> int:
    """Writes a state a line; returns how many."""
    from bettong.inspection.json_lines import state_json

    count = 0
    with path.open("w") as file:
        for each in found:
            file.write(state_json(each) + "\n")
            count += 1
    return count


def write_parquet(path: Path, found: Iterator[KeyState]) -> int:
    """Writes a state a row, the state itself as JSON text; returns how many."""
    import pyarrow as pa
    import pyarrow.parquet

    from bettong.frames.text import to_json

    names = ("stage", "computation", "partition", "offset", "key", "state")
    types = (pa.string(), pa.string(), pa.int32(), pa.int64(), pa.string(), pa.string())
    count = 0
    with pyarrow.parquet.ParquetWriter(path, pa.schema(list(zip(names, types, strict=True)))) as writer:
        while group := list(islice(found, _ROWS_A_GROUP)):
            texts = [to_json(each.state) for each in group]
            columns = [[getattr(each, name) for each in group] for name in names[:-1]]
            arrays = [pa.array(values, kind) for values, kind in zip([*columns, texts], types, strict=True)]
            writer.write_batch(pa.RecordBatch.from_arrays(arrays, schema=writer.schema))
            count += len(group)
    return count
