"""The types of the values of keys."""

from collections.abc import Mapping

KeyPart = str | int | bytes
# A tuple is a key of several fields.
KeyValue = KeyPart | tuple[KeyPart, ...]

# Their names in messages. Their bytes and their texts: `bettong.frames.key_values`.
KEY_TYPES: Mapping[type, str] = {str: "text", int: "integers", bytes: "bytes", tuple: "tuples of these"}
