"""The load of a run file's table: messages of each source, in a mix, with their computed results."""

from __future__ import annotations

from functools import lru_cache

import numpy as np
import pyarrow as pa

from bettong.application.nodes.source import Source
from bettong.application.plan import plan
from bettong.edges.application_file import load as load_application
from bettong.errors import SettingsError
from bettong.frames.columns import Columns
from bettong.frames.text import json_line_of_values
from bettong.ingest.body import assign, read_body
from bettong.lab.computed_load import ComputedLoad
from bettong.lab.generators import shares
from bettong.lab.load import PARTITION, VALUE, LabLoad, LoadPart, make_load
from bettong.lab.load_table import LoadTable
from bettong.lab.source_messages import rows_of
from bettong.lab.spec import RunSpec
from bettong.schema.json_objects import JsonObjects
from bettong.v1.frame_pb2 import Rows
from bettong.v1.ingest_pb2 import IngestFrame


def load_of(spec: RunSpec) -> LabLoad:
    """The load of a run, from a Python file or a table. Raises SettingsError that names it."""
    if isinstance(spec.load, str):
        return make_load(spec.load, spec.all_messages, spec.seed)
    return _table_load(spec.model_dump_json())


@lru_cache(maxsize=2)
def _table_load(text: str) -> ComputedLoad:
    """The load of a run, given as JSON. Cached, because repeats have the same messages and expected results."""
    spec = RunSpec.model_validate_json(text)
    if not isinstance(spec.load, LoadTable):
        raise TypeError(text)
    app = load_application(spec.application)
    sources = {source.name: source for source in plan(app).sources}
    faults, parts = [], []
    counts = shares(spec.all_messages, [each.share for each in spec.load.sources])
    for number, (table, count) in enumerate(zip(spec.load.sources, counts, strict=True)):
        where = f"load.sources[{number}]"
        if table.source not in sources:
            known = ", ".join(map(repr, sources))
            faults.append(
                f"{where}.source: {spec.application} has no source {table.source!r}; it has {known}"
            )
            continue
        source = sources[table.source]
        try:
            rows = rows_of(table, source, count, seed=spec.seed, where=where)
            parts.append(_part(source, rows, spec.partitions))
        except SettingsError as error:
            faults.append(str(error))
    if faults:
        raise SettingsError(f"{spec.name}: {'; '.join(faults)}")
    try:
        return ComputedLoad(
            app,
            parts,
            partitions=spec.partitions,
            compiled=spec.compiled,
            any_order=spec.load.any_order,
        )
    except SettingsError as error:
        raise SettingsError(f"{spec.name}, load: {error}") from None


def _part(source: Source, rows: pa.RecordBatch | list[bytes], partitions: int) -> LoadPart:
    """The messages as clients send them, or as records of a topic, with those of a key in one partition."""
    if isinstance(rows, pa.RecordBatch):
        if source.from_ is None:
            return LoadPart(source.name, dict(zip(rows.schema.names, rows.columns, strict=True)))
        if not isinstance(source.decoder, JsonObjects):
            raise SettingsError(
                f"source {source.name!r} reads a topic by a decoder of its own, so records for it cannot be generated:"
                ' give a file of its bytes (.txt: a line a record, .bin: framed), or the source format="json"'
            )
        columns = Columns.of_batch(source.schema, rows)
        values = zip(*map(columns.values, range(len(columns.columns))), strict=True)
        rows = [json_line_of_values(source.schema, each) for each in values]
    records: dict[str, np.ndarray] = {VALUE: np.fromiter(rows, object, len(rows))}
    if source.key is not None and rows:
        body, assigned = assign(source, read_body(source, IngestFrame(rows=Rows(messages=rows))), partitions)
        records[PARTITION] = np.zeros(len(rows), int)
        records[PARTITION][slice(None) if body.indexes is None else body.indexes] = assigned
    return LoadPart(source.name, records)
