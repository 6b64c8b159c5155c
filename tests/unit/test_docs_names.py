"""Names of Python that pages use are there, and every page is in the list of all pages."""

import re
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import pytest

from tests.unit.test_docs import LINK, PAGES, ROOT

DOCS = ROOT / "docs"
NAME = re.compile(r"(?<![\w/.{}-])bettong(?:\.[A-Za-z_]\w*)+")
# Decisions name what there was when they were made.
READ = [page for page in PAGES if page.parent.name != "decisions"]
# Keys of Arrow's metadata and attributes of traces look alike: they are strings of our code.
TEXTS = frozenset(
    found
    for folder in ("src", "services")
    for path in (ROOT / folder).rglob("*.py")
    for found in re.findall(r"[\"'](bettong\.\w+)[\"']", path.read_text())
)


def missing(text: str) -> Iterator[str]:
    """Names below `bettong` that a text uses, and that are neither there nor strings of our code."""
    for name in dict.fromkeys(NAME.findall(text)):
        if name not in TEXTS and not is_there(name):
            yield name


def is_there(name: str) -> bool:
    first, *parts = name.split(".")
    found = import_module(first)
    for number, part in enumerate(parts, start=1):
        if not hasattr(found, part):
            try:
                import_module(".".join([first, *parts[:number]]))
            except ImportError:
                return False
        found = getattr(found, part)
    return True


@pytest.mark.parametrize("page", READ, ids=lambda page: str(page.relative_to(ROOT)))
def test_names_of_bettong_that_a_page_uses_are_there(page: Path) -> None:
    assert list(missing(page.read_text())) == []


def test_a_name_that_is_not_there_is_found() -> None:
    text = "`@bettong.vectorized`, `bettong.columns`, bettong.testing.run, `bettong.testing.gone(x)`, `bettong.kind`"
    assert list(missing(text)) == ["bettong.columns", "bettong.testing.gone"]


def test_the_start_page_lists_every_page_once() -> None:
    listed = [path for path, _ in LINK.findall((DOCS / "index.md").read_text().split("\n## All pages\n")[1])]
    pages = {page.name for page in DOCS.glob("*.md")} - {"index.md"}
    folders = {f"{page.parent.name}/index.md" for page in DOCS.glob("*/index.md")}
    assert sorted(listed) == sorted(pages | folders | {"../CONTRIBUTING.md", "../CHANGELOG.md"})
