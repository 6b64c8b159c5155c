"""The values of keys: the bytes that choose their partition, and their text for users.

Their types: `bettong.schema.key_types`.
"""

import json
from collections.abc import Iterable
from typing import Any

from bettong.frames.text import to_json
from bettong.schema.json_values import bytes_of, text_of
from bettong.schema.key_types import KEY_TYPES, KeyPart, KeyValue


def key_bytes(key: KeyValue) -> bytes:
    """The bytes whose hash chooses a key's partition. Raises TypeError for no key, OverflowError beyond 64 bits."""
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, bytes):
        return key.rstrip(b"\0")
    if isinstance(key, int):
        return key.to_bytes(8, "little", signed=key < 2**63)
    if isinstance(key, tuple):
        parts = [_part_bytes(part) for part in key]
        return b"".join(len(part).to_bytes(4, "little") + part for part in parts)
    raise TypeError(f"a key must be {_TYPES}, not {type(key).__name__}")


def _part_bytes(part: KeyValue) -> bytes:
    if isinstance(part, tuple):
        raise TypeError(f"a part of a key must be {_PARTS}, not tuple")
    return key_bytes(part)


def key_text(key: KeyValue) -> str:
    """A key as users write it: a tuple as a JSON array."""
    if isinstance(key, tuple):
        return to_json(key_json(key), separators=(",", ":"))
    return text_of(key) if isinstance(key, bytes) else str(key)


def key_json(key: KeyValue) -> Any:
    """A key as a JSON value."""
    if isinstance(key, tuple):
        return [key_json(part) for part in key]
    return text_of(key) if isinstance(key, bytes) else key


def read_parts(text: str) -> list[str]:
    """The parts of a tuple from its text, each as users write it. Raises ValueError."""
    try:
        found = json.loads(text)
    except ValueError:
        found = None
    if not isinstance(found, list) or not all(isinstance(each, str | int) for each in found):
        raise ValueError(f'{text!r} is no array of JSON, as in ["ACME", 7]')
    return [each if isinstance(each, str) else json.dumps(each) for each in found]


def read_key(text: str, kind: type, *, width: int = 0) -> KeyPart:
    """The key of a type (or a bool) from its text; `width` bytes where bytes have a fixed width.

    Raises ValueError, which says what is expected.
    """
    if kind is bytes:
        return bytes_of(text).ljust(width, b"\0")
    if kind is bool and text in ("true", "false"):
        return int(text == "true")
    if kind not in (int, bool):
        return text
    try:
        return int(text)
    except ValueError:
        raise ValueError(f"{text!r} is no {'whole number' if kind is int else 'true or false'}") from None


def _listed(kinds: Iterable[type]) -> str:
    names = [kind.__name__ for kind in kinds]
    return f"{', '.join(names[:-1])} or {names[-1]}"


_TYPES = _listed(KEY_TYPES)
_PARTS = _listed(kind for kind in KEY_TYPES if kind is not tuple)
