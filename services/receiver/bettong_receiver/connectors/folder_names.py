"""Folders named after fields of a message: `day=2026-11-26/hour=03`. Pure.

Names are those that Hive writes, and Spark, DuckDB and Arrow read back: characters with a special meaning to them or to
a file system are written as `%` and two hex digits, so no message content can escape from its folder.
"""

import re
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

from bettong.schema.fields import Field
from bettong.schema.json_values import json_value

# Linux's limit for one name, in bytes.
NAME_BYTES_MAX = 255
# Hive's folder for messages without a value; readers take an empty text for no value, too.
_NO_VALUE = "__HIVE_DEFAULT_PARTITION__"
_ESCAPED = re.compile(r"""[\x00-\x1f\x7f"#%'*/:=?\\{}\[\]^]""")
# Combinations of values whose folder is cached: enough for those of current messages.
_CACHED_MAX = 4096


def folders_by(fields: Sequence[Field]) -> Callable[[tuple[Any, ...]], str]:
    """Returns a function from the values of these fields to the folder, outermost first, separated by `/`."""

    @lru_cache(_CACHED_MAX)
    def folder(values: tuple[Any, ...]) -> str:
        return "/".join(
            f"{_escaped(field.name)}={_text(field, value)}"
            for field, value in zip(fields, values, strict=True)
        )

    return folder


def name_fault(folder: str) -> str | None:
    """Why a folder of this name cannot be created on any disk; None when it can."""
    for name in folder.split("/"):
        if (size := len(name.encode())) > NAME_BYTES_MAX:
            return f"the folder {name[:40]}... would have a name of {size} bytes, at most {NAME_BYTES_MAX}"
    return None


def _text(field: Field, value: Any) -> str:
    found = json_value(field, value)
    if found is None or found == "":
        return _NO_VALUE
    return str(found).lower() if isinstance(found, bool) else _escaped(str(found))


def _escaped(text: str) -> str:
    return _ESCAPED.sub(lambda match: f"%{ord(match[0]):02X}", text)
