"""The code of a page of docs, as a module."""

import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def languages(page: Path) -> set[str]:
    """Of its code blocks; empty for a block without one."""
    return {language for language, _ in FENCE.findall(page.read_text())}


def page_module(page: Path, *, imported_as: str | None = None) -> ModuleType:
    """Runs its Python blocks in order, as one module whose lines are those of the page.

    It stays in `sys.modules`: there the annotations of its classes are looked up. `imported_as`: under this name, too,
    where one block is a file that imports another.
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
    if imported_as is not None:
        sys.modules[imported_as] = module
    exec(compile("\n".join(lines), str(page), "exec"), module.__dict__)  # noqa: S102 - our own page
    return module


def run_tests(module: ModuleType) -> int:
    """Runs the test functions of a page, and says how many there are."""
    tests = [value for name, value in vars(module).items() if name.startswith("test_")]
    for test in tests:
        test()
    return len(tests)


def blocks(page: Path, language: str) -> list[str]:
    """The code blocks of a language, in their order."""
    return [code for found, code in FENCE.findall(page.read_text()) if found == language]


def run_block(page: Path, number: int, **names: Any) -> dict[str, Any]:
    """Runs one Python block of a page by itself. `names`: what the page takes as given; also those that it defines."""
    module = sys.modules[f"page_{page.stem}_{number}"] = ModuleType(f"page_{page.stem}_{number}")
    module.__dict__.update(names)
    exec(compile(blocks(page, "python")[number], str(page), "exec"), module.__dict__)  # noqa: S102 - our own page
    return module.__dict__
