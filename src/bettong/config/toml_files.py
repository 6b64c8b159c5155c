"""Reads TOML files that a model describes, reporting all faults at once; and writes them."""

from __future__ import annotations

import difflib
import json
import re
import tomllib
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import TypeVar, get_args

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from bettong.errors import SettingsError

_PLAIN_KEY = re.compile(r"[A-Za-z0-9_-]+")
_Model = TypeVar("_Model", bound=BaseModel)


def read(path: Path) -> dict[str, object]:
    """The tables of a file. Raises SettingsError that names it."""
    try:
        return tomllib.loads(path.read_text())
    except OSError as error:
        raise SettingsError(f"{path} cannot be read: {error.strerror or error}") from None
    except ValueError as error:  # TOMLDecodeError and UnicodeDecodeError are both
        raise SettingsError(f"{path} is not TOML: {error}") from None
    except RecursionError:
        raise SettingsError(f"{path} is not TOML: nested too deeply") from None


def checked(
    model: type[_Model], content: Mapping[str, object], where: str, *, tags: Collection[str] = ()
) -> _Model:
    """The tables as a model. Raises SettingsError that names `where`, table and field of every fault.

    `tags`: names of the members of unions, which pydantic puts into locations: after an index, or in <> anywhere.
    """
    try:
        return model.model_validate(content)
    except ValidationError as error:
        faults = "; ".join(_located_fault(fault, model, tags) for fault in error.errors())
        raise SettingsError(f"{where}, {error.error_count()} fault(s): {faults}") from None


def text_of(model: BaseModel) -> str:
    """The text of a file from which `read` and `checked` make the model again, except empty lists and tables.

    Tables within tables, and within lists of these, are written in one line.
    """
    content = model.model_dump(mode="json", exclude_none=True)
    filled = {name: value for name, value in content.items() if value not in ([], {})}
    tables = {name: value for name, value in filled.items() if isinstance(value, dict)}
    lists = {
        name: value
        for name, value in filled.items()
        if isinstance(value, list) and all(isinstance(each, dict) for each in value)
    }
    lines = [*_lines({name: value for name, value in filled.items() if name not in tables | lists})]
    for name, table in tables.items():
        lines += ["", f"[{name}]", *_lines(table)]
    for name, rows in lists.items():
        for row in rows:
            lines += ["", f"[[{name}]]", *_lines(row)]
    return "\n".join(lines) + "\n"


def line_of(model: BaseModel) -> str:
    """The model as a table in one line, without its defaults."""
    return _inline(model.model_dump(mode="json", exclude_defaults=True))


def _lines(table: Mapping[str, object]) -> Iterator[str]:
    for name, value in table.items():
        key = name if _PLAIN_KEY.fullmatch(name) else _inline(name)
        yield f"{key} = {_inline(value)}"


def _inline(value: object) -> str:
    """A value in one line: TOML's texts and numbers are JSON's, except that TOML escapes DEL, too."""
    if isinstance(value, dict):
        return f"{{ {', '.join(_lines(value))} }}"
    if isinstance(value, list):
        return f"[{', '.join(map(_inline, value))}]"
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def _located_fault(fault: ErrorDetails, model: type[BaseModel], tags: Collection[str]) -> str:
    where = _location(fault["loc"], tags)
    text = _fault_text(fault, model, where)
    return f"{where}: {text}" if where else text


def _fault_text(fault: ErrorDetails, model: type[BaseModel], where: str) -> str:
    given = fault["input"]
    match fault["type"]:
        case "missing":
            return "missing"
        case "extra_forbidden":
            return _no_such_field(str(fault["loc"][-1]), _fields_at(model, fault["loc"][:-1]))
        case "union_tag_invalid":
            return f"kind {fault['ctx']['tag']!r}: expected one of {fault['ctx']['expected_tags']}"
        case "union_tag_not_found":
            return "its kind is missing"
        case "list_type" if isinstance(given, dict):
            return f"expected a list of tables: write [[{where}]]"
        case "value_error":
            return fault["msg"].removeprefix("Value error, ")
    return fault["msg"] + (f" (got {given!r})" if isinstance(given, str | int | float) else "")


def _no_such_field(name: str, fields: Collection[str]) -> str:
    if near := difflib.get_close_matches(name, fields, n=1, cutoff=0.7):
        return f"there is no such field; is {near[0]} meant?"
    return f"there is no such field, expected one of {', '.join(fields)}"


def _fields_at(model: type[BaseModel], location: tuple[str | int, ...]) -> list[str]:
    """The names of all fields of the tables that may be at a location."""
    tables = {model}
    for (
        part
    ) in location:  # parts that are no field are an index, a key, or a tag: they lead to no other table
        fields = [table.model_fields[part] for table in tables if part in table.model_fields]
        tables = {each for field in fields for each in _tables_in(field.annotation)} or tables
    return list(dict.fromkeys(name for table in tables for name in table.model_fields))


def _tables_in(annotation: object) -> Iterator[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        yield annotation
    for each in get_args(annotation):
        yield from _tables_in(each)


def _location(location: tuple[str | int, ...], tags: Collection[str]) -> str:
    """A location as `nemeses[0].targets[1]`; "" is the whole file."""
    text = ""
    for before, part in zip((None, *location), location, strict=False):
        if isinstance(part, int):
            text += f"[{part}]"
        elif part not in tags or not (isinstance(before, int) or part.startswith("<")):
            text += f".{part}" if text else part
    return text
