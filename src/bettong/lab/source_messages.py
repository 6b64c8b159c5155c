"""The messages of one source, generated or read from a file, as a table of the run file describes them."""

from __future__ import annotations

import zlib
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import numpy as np
import pyarrow as pa

from bettong.application.nodes.source import Source
from bettong.client.message_files import Format, format_of, portions
from bettong.client.message_input import Wanted
from bettong.errors import BettongError, SchemaError, SettingsError
from bettong.frames.columns import Array
from bettong.lab.generators import disordered, skewed, weighed
from bettong.lab.load_table import (
    Choice,
    Constant,
    Counter,
    Generator,
    Keys,
    SourceTable,
    Time,
    UniformNumber,
    Value,
)
from bettong.schema.defaults import has_default
from bettong.schema.fields import Field, Kind
from bettong.schema.forms.times import DatetimeForm
from bettong.schema.json_values import reader_of
from bettong.schema.tables import batch_of
from bettong.schema.values import arrow_of, column_of_values

_ROWS_MAX = 10_000
_ROW_BYTES_MAX = 16 << 20
_US_NS, _MS_NS, _S_NS = 1_000, 1_000_000, 1_000_000_000
_BYTES = (Format.LINES, Format.BINARY)


def rows_of(
    table: SourceTable, source: Source, count: int, *, seed: int, where: str
) -> pa.RecordBatch | list[bytes]:
    """`count` messages of a source: columns of its schema; or bytes, of a file of bytes for the source's decoder.

    Raises SettingsError with all faults at once, each with its field or file and the remedy, prefixed by `where`.
    """
    streams, faults = _RandomStreams(seed, source.name), [*_faults(table, source)]
    columns = _generated_columns(table, source, count, streams, faults)
    event_field = source.event_time.of if isinstance(source.event_time.of, str) else None
    if table.file is not None:
        wanted = pa.schema([field for field in source.schema.arrow if field.name not in table.fields])
        try:
            replayed = _replayed(Path(table.file), wanted, source, count)
        except SettingsError as error:
            faults.append(f"file: {error}")
        else:
            if isinstance(replayed, list):
                if table.fields or table.disorder_ms:
                    faults.append("file: bytes have no fields: leave out fields and disorder_ms")
                _raise_faults(where, faults)
                return replayed
            columns |= _repeated(replayed, count, event_field)
    _raise_faults(where, faults)
    rows = batch_of(source.schema.arrow, columns)
    if not table.disorder_ms or event_field is None:
        return rows
    times, within_ns = _event_ns(rows.column(event_field)), round(table.disorder_ms * _MS_NS)
    return rows.take(pa.array(disordered(times, within_ns=within_ns, drawn=streams.of(""))))


def _raise_faults(where: str, faults: list[str]) -> None:
    if faults:
        raise SettingsError("; ".join(f"{where}.{fault}" for fault in faults))


def _faults(table: SourceTable, source: Source) -> Iterator[str]:
    """Faults that show before anything is generated or read."""
    known = [field.name for field in source.schema.fields]
    for name in table.fields:
        if name not in known:
            yield f"fields.{name}: the source has no such field; it has {', '.join(known)}"
    if table.file is None:
        for field in source.schema.arrow:
            if field.name not in table.fields and not has_default(field):
                yield f"fields.{field.name}: no generator, and the field has no default: give it one"
    elif set(known) <= set(table.fields):
        yield f"file: all fields have generators, so nothing of {table.file} is used: leave out either"
    if table.disorder_ms and not isinstance(source.event_time.of, str):
        yield "disorder_ms: the source has no field as its event_time=, so nothing is out of order: leave it out"


def _generated_columns(
    table: SourceTable, source: Source, count: int, streams: _RandomStreams, faults: list[str]
) -> dict[str, pa.Array]:
    """The columns of fields that have generators; adds those that fail to `faults`."""
    columns = {}
    for field in source.schema.fields:
        if field.name in table.fields:
            try:
                columns[field.name] = _generated(
                    table.fields[field.name], field, count, streams.of(field.name)
                )
            except (SettingsError, SchemaError, ValueError, OverflowError) as error:
                faults.append(f"fields.{field.name}: {error}")
    return columns


class _RandomStreams:
    """A stream of random numbers for each field, so that adding a field leaves the values of others as they are."""

    def __init__(self, seed: int, source: str) -> None:
        self._seeds = [seed % 2**64, zlib.crc32(source.encode())]

    def of(self, field: str) -> np.random.Generator:
        """The random numbers of a field."""
        return np.random.default_rng([*self._seeds, zlib.crc32(field.encode())])


def _generated(generator: Generator, field: Field, count: int, drawn: np.random.Generator) -> pa.Array:
    """A column of generated values. Raises SettingsError, SchemaError or numpy's if the field cannot hold them."""
    if isinstance(generator, Constant):
        return _select([generator.value], np.zeros(count, int), field)
    if isinstance(generator, Choice):
        weights = generator.weights or [1.0] * len(generator.values)
        return _select(generator.values, weighed(count, weights, drawn=drawn), field)
    values = _numbers(generator, field, count, drawn)
    return batch_of(pa.schema([field.arrow_field]), {field.name: values}).column(0)


def _select(values: list[Value], indexes: Array, field: Field) -> pa.Array:
    """The values at these indexes, as a column; they are read as JSON's would be."""
    read = reader_of(field)
    column = arrow_of(field, column_of_values(field, [read(value) for value in values]))
    return column.take(pa.array(indexes))


def _numbers(
    generator: UniformNumber | Keys | Counter | Time, field: Field, count: int, drawn: np.random.Generator
) -> Array | pa.Array:
    if isinstance(generator, Keys):
        keys = skewed(count, keys=generator.count, skew=generator.skew, drawn=drawn)
        if field.kind is not Kind.TEXT:
            return _require_kind(keys, field, Kind.INT, "keys are whole numbers, or texts")
        texts = [f"{generator.prefix}{number}" for number in range(int(keys.max(initial=0)) + 1)]
        return pa.array(texts).take(pa.array(keys))
    if isinstance(generator, Counter):
        numbers = np.arange(generator.start, generator.start + count)
        return _require_kind(numbers, field, Kind.INT, "a counter is of whole numbers")
    if isinstance(generator, Time):
        return _times(generator, field, count)
    low, high = generator.min, generator.max
    if isinstance(low, int) and isinstance(high, int):
        if field.kind is Kind.INT:
            return drawn.integers(low, high, size=count, endpoint=True, dtype=_integer_type(field))
        low, high = float(low), float(high)
    return _require_kind(
        drawn.uniform(low, high, count), field, Kind.FLOAT, "min and max of a whole number are whole, too"
    )


def _times(generator: Time, field: Field, count: int) -> Array | pa.Array:
    start_ns = int(generator.start.timestamp()) * _S_NS + generator.start.microsecond * _US_NS
    step_ns = generator.span_s * _S_NS / max(1, count)
    times = start_ns + (np.arange(count) * step_ns).astype(np.int64) // _US_NS * _US_NS
    if isinstance(field.form, DatetimeForm):
        return pa.array(times // _US_NS).cast(field.arrow)
    return _require_kind(times, field, Kind.INT, "a time is a datetime, or a whole number, Unix ns")


def _integer_type(field: Field) -> type[np.int64 | np.uint64]:
    return np.uint64 if field.arrow == pa.uint64() else np.int64


def _require_kind(values: Array, field: Field, kind: Kind, otherwise: str) -> Array:
    """The values, for a field of that kind. Raises SettingsError for a field of another one."""
    if field.kind is not kind:
        raise SettingsError(f"the field is of kind {field.kind_name}: {otherwise}")
    return values


def _replayed(path: Path, wanted: pa.Schema, source: Source, count: int) -> pa.RecordBatch | list[bytes]:
    """The wanted fields of the first `count` rows of a file, or of all if it has fewer. Raises SettingsError."""
    bodies, found = [], 0
    takes_bytes = source.decoder is not None and source.from_ is not None
    limits = Wanted(wanted, takes_bytes, messages_max=_ROWS_MAX, bytes_max=_ROW_BYTES_MAX)
    try:
        for portion in portions(path, _format_of(path, takes_bytes=takes_bytes), limits):
            bodies.append(portion.body)
            found += len(portion.body)
            if found >= count:
                break
    except SettingsError:
        raise
    except BettongError as error:
        raise SettingsError(
            f"{error}; the source's fields are {', '.join(source.schema.arrow.names)}: fix the file, or give a field a"
            " generator in fields"
        ) from None
    if not found:
        raise SettingsError(f"{path} holds no messages: give a file that has some")
    if isinstance(bodies[0], list):
        messages = [each for body in bodies for each in body]
        return [messages[number % found] for number in range(count)]
    rows, *more = pa.Table.from_batches(bodies).combine_chunks().to_batches()
    if more:
        raise SettingsError(f"{path}: a text field has 2 GiB or more: ask for fewer messages")
    return rows


def _repeated(rows: pa.RecordBatch, count: int, event_field: str | None) -> dict[str, pa.Array]:
    """`count` rows, from the beginning again when there are fewer; their event times then go on."""
    taken = rows.take(pa.array(np.arange(count) % len(rows)))
    columns = dict(zip(taken.schema.names, taken.columns, strict=True))
    if event_field in columns and count > len(rows):
        columns[event_field] = _continued_times(columns[event_field], len(rows))
    return columns


def _format_of(path: Path, *, takes_bytes: bool) -> Format:
    with suppress(BettongError):
        if (found := format_of(path)) not in _BYTES or takes_bytes:
            return found
    raise SettingsError(
        f"{path}: expected .parquet, .csv or .jsonl; or, of a source that reads a topic, .txt or .bin of bytes for its"
        " decoder"
    )


def _continued_times(times: pa.Array, period: int) -> pa.Array:
    """Shifts repeated event times, so that each repetition begins one mean step after the end of the one before."""
    numbers = times.cast(pa.int64(), safe=False).to_numpy()
    span = int(np.ptp(numbers[:period]))
    shift = span + max(1, span // max(1, period - 1))
    return pa.array(numbers + np.arange(len(numbers)) // period * shift).cast(times.type)


def _event_ns(times: pa.Array) -> Array:
    numbers = times.cast(pa.int64(), safe=False).to_numpy()
    found: Array = numbers * _US_NS if pa.types.is_timestamp(times.type) else numbers
    return found
