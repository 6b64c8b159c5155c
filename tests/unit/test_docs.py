"""The pages that the code decides say what the code says, and what pages name is in the tree."""

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from docs.render import pages

ROOT = Path(__file__).resolve().parents[2]
FOLDERS = sorted(
    each.name for each in ROOT.iterdir() if each.is_dir() and not each.name.startswith((".", "_"))
)
PATH = re.compile(rf"(?<![\w./-])(?:{'|'.join(FOLDERS)}|\.ci)/[\w./*-]*[\w*]")
MODULE = re.compile(r"`([\w./-]+\.py)`")
# Decisions too, however old: one that a later one replaces says so, and names what there is now.
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING")),
    *(
        page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name != "charts.md"
    ),  # of files elsewhere
]


@pytest.mark.parametrize("path", pages(), ids=lambda path: path.name)
def test_a_rendered_page_is_up_to_date(path: Path) -> None:
    assert path.read_text() == pages()[path], f"{path.name} differs from the code; run `make docs`"


def missing(text: str) -> Iterator[str]:
    """Paths below a folder of the tree, and Python files, that a text names and that are not there. May have a `*`."""
    for found in PATH.findall(text):
        if not any(ROOT.glob(found)):
            yield found
    for found in MODULE.findall(text):
        inside = (place for folder in FOLDERS for place in (ROOT / folder).glob(f"**/{found}"))
        if not PATH.match(found) and not (ROOT / found).exists() and not any(inside):
            yield found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_files_that_a_page_names_are_in_the_tree(page: Path) -> None:
    assert list(missing(page.read_text())) == []


def test_a_file_that_is_gone_is_found_wherever_it_is_named() -> None:
    text = (
        "`src/bettong/worker/rows.py`, tests/unit/test_docs.py, [one](tests/gone.md) of services/sender/*.toml and"
        " `services/gone/*.toml`, `other.py`, `test_docs.py`, `unit/test_docs.py`, x/src/none"
    )
    assert list(missing(text)) == [
        "src/bettong/worker/rows.py",
        "tests/gone.md",
        "services/gone/*.toml",
        "other.py",
    ]
