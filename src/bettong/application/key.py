"""The key of a stream: a field of its messages, several of them, or a function of one."""

from collections.abc import Callable
from typing import Any

from bettong.application.signatures import check_function
from bettong.errors import ApplicationError
from bettong.schema.key_types import KEY_TYPES, KeyValue
from bettong.schema.schema import Schema

# `()`, a key of no fields: all messages have the same key.
Key = str | tuple[str, ...] | Callable[[Any], KeyValue]


def check_key(owner: str, key: Key, schema: Schema) -> None:
    """Refuses a key that is neither usable fields of `schema` nor a function of one message."""
    if isinstance(key, str | tuple):
        names = [each.name for each in schema.fields]
        parts = fields_of(key)
        for index, part in enumerate(parts):
            if part in parts[:index]:
                raise ApplicationError(f"key of {owner!r}: {key!r} names field {part!r} twice; name it once")
            if part not in names:
                raise ApplicationError(
                    f"key of {owner!r}: {schema.name} has no field {part!r}; it has {', '.join(names)}"
                )
            field = schema.fields[names.index(part)]
            if field.form is not None:
                raise ApplicationError(
                    f"key of {owner!r}: field {part!r} is a {field.kind_name}; a key is text, bytes or an integer: give"
                    " a function of the message that makes one of it, such as its str()"
                )
            if field.kind.value == "float":
                raise ApplicationError(
                    f"key of {owner!r}: field {part!r} is a float; use text, bytes or integers"
                )
    elif not callable(key):
        raise ApplicationError(
            f"key of {owner!r}: {key!r} is neither a field's name, nor a tuple of such names, nor a function"
        )
    else:
        check_function(f"key of {owner!r}", key, takes=schema.message, returns=tuple(KEY_TYPES))


def fields_of(key: str | tuple[str, ...]) -> tuple[str, ...]:
    """The fields of a key that is not a function."""
    return (key,) if isinstance(key, str) else key


def key_reader(key: Key, schema: Schema) -> Callable[[Any], KeyValue]:
    """A function that returns the key of a message of `schema`. It raises what the user's key function raises."""
    if isinstance(key, str):
        return schema.getter(key)
    if isinstance(key, tuple):
        parts = [schema.getter(part) for part in key]
        return lambda message: tuple(part(message) for part in parts)
    return key


def key_name(key: Key) -> str:
    """A key as messages show it: its fields, or its function."""
    if isinstance(key, str):
        return key
    return f"({', '.join(key)})" if isinstance(key, tuple) else f"{getattr(key, '__qualname__', '?')}()"
