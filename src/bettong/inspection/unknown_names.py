"""Names that functions read and nobody defines: a NameError, which comes with the first message that gets there. Pure.

Judged by byte code, so annotations, which no call evaluates, do not count. Defined is what is there once the file has
run, and what any of its functions makes global.
"""

from __future__ import annotations

import difflib
import dis
from collections.abc import Collection, Iterator
from types import CodeType


def unknown_names(source: bytes, path: str, defined: Collection[str]) -> list[str]:
    """Of each such name where it is read first, as people read it. `defined`: names of the module, and builtins."""
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
