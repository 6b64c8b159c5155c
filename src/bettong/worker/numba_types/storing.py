"""Writes values to memory: how compiled code stores them in records."""

from typing import Any

from numba.core import cgutils

from bettong.worker.numba_types.messages import MessageType


def store_value(context: Any, builder: Any, kind: Any, value: Any, address: Any) -> None:
    """Writes a value; a struct field by field, so that padding bytes stay zero.

    `address`: a pointer to the type's data; numpy's aligned records have the layout of LLVM's structs.
    """
    if not isinstance(kind, MessageType):
        context.pack_value(builder, kind, value, address)
        return
    struct = cgutils.create_struct_proxy(kind)(context, builder, value=value)
    for index, field_type in enumerate(kind.field_types):
        store_value(
            context, builder, field_type, struct[index], cgutils.gep_inbounds(builder, address, 0, index)
        )
