"""Casts Arrow arrays that users pass for a field to its type, where that loses nothing."""

import pyarrow as pa

from bettong.schema.fields import Field
from bettong.schema.form import UnfitValueError

_SORTS = (
    (pa.types.is_boolean, pa.types.is_integer),
    (pa.types.is_integer, pa.types.is_floating),
    (pa.types.is_string, pa.types.is_large_string, pa.types.is_string_view),
    (pa.types.is_binary, pa.types.is_large_binary, pa.types.is_fixed_size_binary),
    (pa.types.is_decimal,),
    (pa.types.is_timestamp,),
    (pa.types.is_duration,),
    (pa.types.is_date,),
    (pa.types.is_list, pa.types.is_large_list, pa.types.is_fixed_size_list),
    (pa.types.is_map,),
    (pa.types.is_struct,),
)


def cast_to(field: Field, array: pa.Array) -> pa.Array:
    """An array of the type of a field with a form, whose values are not checked yet.

    Only types of one sort are cast, without changing a value: never numbers to text, nor datetimes without a time zone
    to instants. Raises UnfitValueError.
    """
    if isinstance(array, pa.ChunkedArray):
        array = array.combine_chunks()
    if isinstance(array, pa.ExtensionArray):
        array = array.storage
    if pa.types.is_dictionary(array.type):
        array = array.dictionary_decode()
    if array.type.equals(field.arrow):
        return array
    if not _can_cast(array.type, field.arrow):
        zone = (
            "; give it a time zone: pyarrow.compute.assume_timezone(column, 'UTC')"
            if pa.types.is_timestamp(array.type) and pa.types.is_timestamp(field.arrow)
            else ""
        )
        raise UnfitValueError(f"{array.type} is no {field.kind_name} ({field.arrow}){zone}")
    try:
        return _relabelled(array.cast(_all_nullable(field.arrow)), field.arrow)
    except (pa.ArrowException, ValueError) as error:
        raise UnfitValueError(f"{array.type} does not fit {field.arrow}: {error}") from None


def _all_nullable(kind: pa.DataType) -> pa.DataType:
    """The type with everything in it nullable: Arrow does not cast null to a non-nullable type, even a nested one."""
    if pa.types.is_map(kind):
        return pa.map_(kind.key_type, _all_nullable(kind.item_type))
    if pa.types.is_list(kind):
        return pa.list_(_all_nullable(kind.value_type))
    if pa.types.is_struct(kind):
        return pa.struct([pa.field(each.name, _all_nullable(each.type)) for each in kind])
    return kind


def _relabelled(array: pa.Array, kind: pa.DataType) -> pa.Array:
    """An array of the type, nullability aside, relabelled as the type itself. A form checks the nulls."""
    if array.type.equals(kind):
        return array
    message = pa.RecordBatch.from_arrays([array], names=[""]).serialize()
    return pa.ipc.read_record_batch(message, pa.schema([pa.field("", kind)])).column(0)


def _can_cast(given: pa.DataType, wanted: pa.DataType) -> bool:
    if pa.types.is_null(given) or given.equals(wanted):
        return True
    if not any(any(of(given) for of in sort) and any(of(wanted) for of in sort) for sort in _SORTS):
        return False
    if pa.types.is_timestamp(given):
        return given.tz is not None
    if pa.types.is_map(given):
        return _can_cast(given.item_type, wanted.item_type)
    if pa.types.is_struct(given):
        names = {each.name for each in given} == {each.name for each in wanted}
        return names and all(_can_cast(given.field(each.name).type, each.type) for each in wanted)
    nested = pa.types.is_list(wanted)
    return not nested or _can_cast(given.value_type, wanted.value_type)
