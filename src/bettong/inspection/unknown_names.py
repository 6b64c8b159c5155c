"""Finds names that functions read and nothing defines: a NameError once a message gets there. Pure.

It reads byte code, so annotations, which no call evaluates, do not count. A name is defined if the module has it
after the file has run, or if any of its functions makes it global.
"""

from __future__ import annotations

import difflib
import dis
from collections.abc import Collection, Iterator
from types import CodeType


def unknown_names(source: bytes, path: str, defined: Collection[str]) -> list[str]:
    """For each such name a text: where it is read first. `defined`: names of the module, and builtins."""
    codes = list(_codes(compile(source, path, "exec")))
    made = {
        each.argval for code in codes for each in dis.get_instructions(code) if each.opname == "STORE_GLOBAL"
    }
    known = {*defined, *made}
    found: dict[str, str] = {}
    for code in codes:
        for each in dis.get_instructions(code):
            if each.opname == "LOAD_GLOBAL" and each.argval not in known | found.keys():
                near = difflib.get_close_matches(each.argval, known, n=1)
                meant = f"; is {near[0]} meant?" if near else ""
                line = each.positions.lineno if each.positions is not None else code.co_firstlineno
                found[each.argval] = (
                    f"{path}:{line}: {code.co_name} reads {each.argval!r}, which is not defined{meant}"
                )
    return list(found.values())


def _codes(code: CodeType) -> Iterator[CodeType]:
    """The code of a module, and of all within it."""
    yield code
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _codes(constant)
