"""Writes values as Python source, for the text of a test."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, fields, is_dataclass
from datetime import date, datetime, time, timedelta, timezone
from decimal import Decimal
from enum import Enum
from typing import Any
from uuid import UUID

from bettong.edges.application_file import MODULE_PREFIX

_DATES = (date, datetime, time, timedelta, timezone)
_WIDTH = 100


@dataclass
class SourceText:
    """Writes values, and collects their imports: by module, the names."""

    imports: dict[str, set[str]] = field(default_factory=dict)

    def import_(self, module: str, name: str) -> str:
        """Imports the first part of a name; returns the whole name."""
        self.imports.setdefault(module.removeprefix(MODULE_PREFIX), set()).add(name.partition(".")[0])
        return name

    def value(self, value: Any) -> str:
        """An expression that makes an equal value; for other classes, its `repr`."""
        if isinstance(value, Enum):
            return f"{self._name(type(value))}.{value.name}"
        if is_dataclass(value) and not isinstance(value, type):
            given = ", ".join(
                f"{each.name}={self.value(getattr(value, each.name))}" for each in fields(value)
            )
            return f"{self._name(type(value))}({given})"
        if isinstance(names := getattr(type(value), "model_fields", None), dict):  # a model of pydantic
            given = ", ".join(f"{name}={self.value(getattr(value, name))}" for name in names)
            return f"{self._name(type(value))}({given})"
        if isinstance(value, float) and not math.isfinite(value):
            return f'float("{value}")'
        if isinstance(value, list):
            return f"[{', '.join(map(self.value, value))}]"
        if type(value) is tuple:
            return f"({', '.join(map(self.value, value))}{',' if len(value) == 1 else ''})"
        if isinstance(value, dict):
            return f"{{{', '.join(f'{self.value(key)}: {self.value(each)}' for key, each in value.items())}}}"
        if isinstance(value, _DATES):
            self.imports.setdefault("", set()).add("datetime")
            return repr(value)
        if isinstance(value, Decimal | UUID):
            self._name(type(value))
        return repr(value)

    def import_lines(self) -> list[str]:
        """The import statements, sorted by module."""
        plain = [f"import {name}" for name in sorted(self.imports.get("", ()))]
        named = sorted((module, names) for module, names in self.imports.items() if module)
        return [*plain, *(f"from {module} import {', '.join(sorted(names))}" for module, names in named)]

    def _name(self, kind: type[Any]) -> str:
        if "<locals>" in kind.__qualname__:
            return kind.__name__
        return self.import_(kind.__module__, kind.__qualname__)


def text_of_value(value: Any) -> str:
    """A value as Python source, to show to people."""
    return SourceText().value(value)


def list_text(items: Iterable[str], indent: str) -> str:
    """A list of expressions, one per line, or on one line where it is short."""
    found = list(items)
    short = f"[{', '.join(found)}]"
    if len(indent) + len(short) <= _WIDTH:
        return short
    return "\n".join(["[", *(f"{indent}    {each}," for each in found), f"{indent}]"])
