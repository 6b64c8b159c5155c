"""The code of a page of docs, as a module."""

import re
import sys
from pathlib import Path
from types import ModuleType

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def languages(page: Path) -> set[str]:
    """Of its code blocks; empty for a block without one."""
    return {language for language, _ in FENCE.findall(page.read_text())}


def page_module(page: Path) -> ModuleType:
    """Runs its Python blocks in order, as one module whose lines are those of the page.

    It stays in `sys.modules`: there the annotations of its classes are looked up.
    """
    text = page.read_text()
    lines = [""] * text.count("\n")
    for block in FENCE.finditer(text):
        if block[1] == "python":
            first = text.count("\n", 0, block.start(2))
            code = block[2].splitlines()
            lines[first : first + len(code)] = code
    name = f"page_{page.parent.name}_{page.stem.replace('-', '_')}"
    module = sys.modules[name] = ModuleType(name)
    exec(compile("\n".join(lines), str(page), "exec"), module.__dict__)  # noqa: S102 - our own page
    return module
