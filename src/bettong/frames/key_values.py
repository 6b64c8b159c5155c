"""The values of keys: the bytes that choose their partition, and the text by which people write them.

What types they have: `bettong.schema.key_types`.
"""

from bettong.frames.text import bytes_of, text_of
from bettong.schema.key_types import KEY_TYPES, KeyValue


def key_bytes(key: KeyValue) -> bytes:
    """What a key's partition is the hash of. Raises TypeError for what is no key, OverflowError beyond 64 bits."""
    if isinstance(key, str):
        return key.encode()
    if isinstance(key, bytes):
        return key.rstrip(b"\0")
    if isinstance(key, int):
        return key.to_bytes(8, "little", signed=key < 2**63)
    raise TypeError(f"a key must be {_TYPES}, not {type(key).__name__}")


def key_text(key: KeyValue) -> str:
    """A key as people write it."""
    return text_of(key) if isinstance(key, bytes) else str(key)


def read_key(text: str, kind: type, *, width: int = 0) -> KeyValue:
    """The key of a type (or a bool) that a text stands for; `width` bytes where bytes have a fixed width.

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


_NAMES = [kind.__name__ for kind in KEY_TYPES]
_TYPES = f"{', '.join(_NAMES[:-1])} or {_NAMES[-1]}"
