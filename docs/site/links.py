"""Turns a page of the tree into one of the site: where its links lead, and what Python's Markdown reads otherwise.

Pages are written to be read where they lie, so they link to files of the tree. On the site each such file is a page
too, below `tree`. Pure: knows paths and texts, reads no file. A path here is from the tree's root.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Iterator
from pathlib import PurePosixPath

DOCS = "docs/"
OUTSIDE = "tree/"
FENCE = re.compile(r"^( *)```.*?^\1```[^\n]*$", re.MULTILINE | re.DOTALL)
# What it is called, where that is the name of a page's file; the file; the anchor.
_LINK = re.compile(r"(?:\[([\w./-]+\.md))?\]\((?!\w+:|#|/)([^)#\s]+)(#[^)\s]*)?\)")
_ITEM = re.compile(r"(?:[-*]|\d+\.) ")
_LANGUAGES = {
    ".py": "python",
    ".toml": "toml",
    ".yaml": "yaml",
    ".json": "json",
    ".sh": "sh",
    ".proto": "protobuf",
}


def place(path: str) -> str:
    """Where the site has a file of the tree: of docs/ as it is, others below `tree`, as pages."""
    if path.startswith(DOCS):
        return path.removeprefix(DOCS)
    # A README by its own name would be the page of its folder, without a place of its own.
    return OUTSIDE + (path.replace("README.md", "readme.md") if path.endswith(".md") else f"{path}.md")


def targets(path: str, text: str) -> Iterator[str]:
    """The files that the links of a page lead to. `path`: of the page."""
    for part in _prose(text):
        for link in _LINK.finditer(part):
            yield _target(path, link[2])


def for_site(path: str, text: str, title_of: Callable[[str], str | None]) -> str:
    """The text of a page as the site needs it. `title_of`: of a file of the tree; None where the site has it not.

    Those links stay as they are, and the builder names what leads nowhere. A link that is called by its file's name
    is called by its page's title.
    """
    here = posixpath.dirname(place(path))

    def moved(link: re.Match[str]) -> str:
        target = _target(path, link[2])
        title = title_of(target)
        if title is None:
            return link[0]
        called = f"[{title or link[1]}" if link[1] else ""
        return f"{called}]({posixpath.relpath(place(target), here or '.')}{link[3] or ''})"

    return _each_prose(text, lambda part: _lists_apart(_LINK.sub(moved, part)))


def as_page(path: str, text: str) -> str:
    """The page of a file that is none: its text, as code."""
    language = _LANGUAGES.get(PurePosixPath(path).suffix, "text")
    ticks = "`" * (1 + max((len(run) for run in re.findall(r"`{3,}", text)), default=2))
    return f"# {path}\n\n{ticks}{language}\n{text.rstrip()}\n{ticks}\n"


def _target(path: str, link: str) -> str:
    return posixpath.normpath(posixpath.join(posixpath.dirname(path), link))


def _prose(text: str) -> list[str]:
    return FENCE.sub("\0", text).split("\0")


def _each_prose(text: str, change: Callable[[str], str]) -> str:
    fences = iter([found[0] for found in FENCE.finditer(text)])
    first, *others = [change(part) for part in _prose(text)]
    return first + "".join(next(fences) + other for other in others)


def _lists_apart(text: str) -> str:
    """An empty line between a paragraph and a list, which Python's Markdown needs and GitHub's does not."""
    made: list[str] = []
    in_list = False
    for line in text.split("\n"):
        begins = _ITEM.match(line) is not None
        if begins and not in_list and made and made[-1].strip():
            made.append("")
        in_list = begins or (in_list and bool(line.strip()))
        made.append(line)
    return "\n".join(made)
