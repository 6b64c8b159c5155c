"""The types that the values of keys have."""

from collections.abc import Mapping

KeyPart = str | int | bytes
# A tuple: of several fields.
KeyValue = KeyPart | tuple[KeyPart, ...]

# What people call each. Their bytes and their texts: `bettong.frames.key_values`.
KEY_TYPES: Mapping[type, str] = {str: "text", int: "integers", bytes: "bytes", tuple: "tuples of these"}
