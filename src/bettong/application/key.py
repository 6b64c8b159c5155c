"""The key of a stream: a field of its messages, or a function of one."""

from collections.abc import Callable
from typing import Any

from bettong.application.signatures import check_function
from bettong.errors import ApplicationError
from bettong.schema.key_types import KEY_TYPES, KeyValue
from bettong.schema.schema import Schema

Key = str | Callable[[Any], KeyValue]


def check_key(owner: str, key: Key, schema: Schema) -> None:
    """Refuses a key that is neither a usable field of `schema` nor a function of one message."""
    if isinstance(key, str):
        names = [each.name for each in schema.fields]
        if key not in names:
            raise ApplicationError(
                f"key of {owner!r}: {schema.name} has no field {key!r}; it has {', '.join(names)}"
            )
        if schema.fields[names.index(key)].kind.value == "float":
            raise ApplicationError(f"key of {owner!r}: field {key!r} is a float; use text, bytes or integers")
    elif not callable(key):
        raise ApplicationError(f"key of {owner!r}: {key!r} is neither a field's name nor a function")
    else:
        check_function(f"key of {owner!r}", key, takes=schema.message, returns=tuple(KEY_TYPES))
