"""Messages as JSON text: what people read in result files, dead letters and on the terminal.

One object a message, fields in the schema's order. Numbers keep every digit (Python's `repr` of a float reads
back as the same float); NaN and infinities are the words `NaN`, `Infinity`, `-Infinity`; bytes are their text when
they are printable UTF-8, else `base64:...`.
"""

import base64
import contextlib
import json
from typing import Any

from bettong.application.schema import Schema

_BASE64 = "base64:"


def json_line(schema: Schema, message: Any) -> bytes:
    """One message as a JSON object, without a line end."""
    values = {field.name: _plain(getattr(message, field.name)) for field in schema.fields}
    return json.dumps(values, ensure_ascii=False, separators=(",", ":")).encode()


def text_of(data: bytes) -> str:
    """Bytes as text that can be turned back: printable UTF-8 as it is, else `base64:` and the encoded bytes."""
    with contextlib.suppress(UnicodeDecodeError):
        text = data.decode()
        if text.isprintable() and not text.startswith(_BASE64):
            return text
    return _BASE64 + base64.b64encode(data).decode()


def _plain(value: Any) -> Any:
    return text_of(value) if isinstance(value, bytes) else value
