"""Writes states to files: a line of JSON each, or Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet

from bettong.errors import BettongError
from bettong.frames.text import to_json
from bettong.inspection.json_lines import state_json
from bettong.inspection.states import KeyState

_ROWS_A_GROUP = 10_000


def export(file: Path, found: Iterator[KeyState]) -> int:
    """Writes all states, in the format of the file's ending (`WRITERS`); returns how many.

    The file appears once it is complete. Raises BettongError when it cannot be written.
    """
    unfinished = file.with_name(file.name + ".unfinished")
    try:
        count = WRITERS[file.suffix](unfinished, found)
        unfinished.replace(file)
    except OSError as error:
        raise BettongError(f"{file} cannot be written: {error}") from None
    finally:
        unfinished.unlink(missing_ok=True)
    return count


def _write_lines(path: Path, found: Iterator[KeyState]) -> int:
    """A line for each state."""
    count = 0
    with path.open("w") as file:
        for each in found:
            file.write(state_json(each) + "\n")
            count += 1
    return count


def _write_parquet(path: Path, found: Iterator[KeyState]) -> int:
    """A row for each state, the state itself as JSON text."""
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


# By the ending of a file's name.
WRITERS: dict[str, Callable[[Path, Iterator[KeyState]], int]] = {
    ".jsonl": _write_lines,
    ".parquet": _write_parquet,
}
