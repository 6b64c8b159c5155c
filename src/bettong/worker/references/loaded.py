"""Converts what `load()` of a reference table returned to the rows of its source."""

from collections.abc import Sequence
from typing import Any

import pyarrow as pa

from bettong.application.reference_source import ReferenceSource
from bettong.errors import SchemaError
from bettong.frames.columns import Columns
from bettong.schema.tables import batch_of
from bettong.user_errors import ANY_ERROR, cause_in_a_line
from bettong.worker.references.table import BYTES_MAX, ROWS_MAX, ReferenceTable


def loaded_table(source: ReferenceSource, loaded: object) -> ReferenceTable:
    """The rows of a table: an Arrow table or batch, a pandas or Spark DataFrame, or a list of rows as objects.

    Columns that the rows' class does not have are dropped. Raises SchemaError for anything else, for missing columns,
    values that do not fit, a key that comes twice, or a table that is too large.
    """
    if isinstance(loaded, Sequence) and all(isinstance(each, source.schema.made_class) for each in loaded):
        return ReferenceTable(source, Columns.of_messages(source.schema, loaded))
    table = _arrow(loaded)
    if table.num_rows > ROWS_MAX:
        raise SchemaError(f"more than {ROWS_MAX:,} rows; join a stream with what is larger, by key")
    kept = [name for name in dict.fromkeys(table.column_names) if name in source.schema.arrow.names]
    if len(set(table.column_names)) < len(table.column_names):
        raise SchemaError(f"several columns have the same name: {', '.join(table.column_names)}")
    table = table.select(kept)
    if table.nbytes > 2 * BYTES_MAX:
        raise SchemaError(f"{table.nbytes:,} bytes; a reference table has at most {BYTES_MAX:,}")
    columns = {name: _one_array(table.column(name)) for name in kept}
    return ReferenceTable(source, Columns.of_batch(source.schema, batch_of(source.schema.arrow, columns)))


def _arrow(loaded: object) -> pa.Table:
    given: Any = loaded
    try:
        if isinstance(given, pa.Table):
            return given
        if isinstance(given, pa.RecordBatch):
            return pa.Table.from_batches([given])
        if type(given).__module__.partition(".")[0] == "pandas":
            return pa.Table.from_pandas(given, preserve_index=False)
        if hasattr(given, "toArrow"):  # Spark's; the driver must not collect a table that is too large
            return given.limit(ROWS_MAX + 1).toArrow()
        if hasattr(given, "__arrow_c_stream__"):
            return pa.table(given)
    except ANY_ERROR as error:  # of a library, or of what Spark runs for it
        raise SchemaError(f"what load() returned cannot be read: {cause_in_a_line(error)}") from None
    raise SchemaError(
        f"load() returned {type(given).__name__}; expected an Arrow table, a pandas or a Spark DataFrame"
    )


def _one_array(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_large_string(column.type):
        column = column.cast(pa.string())
    found = column.combine_chunks()
    return found if isinstance(found, pa.Array) else pa.concat_arrays(found.chunks)
