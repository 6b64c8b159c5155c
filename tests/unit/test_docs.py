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
LINK = re.compile(r"\]\((?!\w+:)([^)#\s]*)(?:#([^)\s]+))?\)")
HEADING = re.compile(r"^#+ (.+)$", re.MULTILINE)
FENCE = re.compile(r"^( *)```.*?^\1```", re.MULTILINE | re.DOTALL)
# Decisions too, however old: one that a later one replaces says so, and names what there is now.
PAGES = [
    *(ROOT / f"{name}.md" for name in ("README", "CONTRIBUTING")),
    *(
        page for page in sorted((ROOT / "docs").rglob("*.md")) if page.name != "charts.md"
    ),  # of files elsewhere
]
RENDERED = pages()
READMES = sorted(ROOT.glob("services/*/README.md")) + sorted(ROOT.glob("deploy/helm/*/README.md"))


@pytest.mark.parametrize("path", RENDERED, ids=lambda path: path.name)
def test_a_rendered_page_is_up_to_date(path: Path) -> None:
    assert path.read_text() == RENDERED[path], f"{path.name} differs from the code; run `make docs`"


def missing(text: str) -> Iterator[str]:
    """Paths below a folder of the tree, and Python files, that a text names and that are not there. May have a `*`."""
    for found in PATH.findall(text):
        if not any(ROOT.glob(found)):
            yield found
    for found in MODULE.findall(text):
        names = (found, f"{found}.template")  # `bettong init` makes files of templates
        inside = (path for folder in FOLDERS for name in names for path in (ROOT / folder).glob(f"**/{name}"))
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


def broken(page: Path, text: str) -> Iterator[str]:
    """Links of a page to files that are not there, or to headings that a page does not have."""
    for path, anchor in LINK.findall(FENCE.sub("", text)):
        target = page.parent / path
        there = text if not path else target.read_text() if anchor and target.is_file() else ""
        found = (not path or target.exists()) and (not anchor or anchor in anchors(there))
        if not found:
            yield f"{path}#{anchor}" if anchor else path


def anchors(text: str) -> set[str]:
    """What a link to a heading of the page ends with: its words, in small letters, with dashes between."""
    headings = (heading.lower().replace(" ", "-") for heading in HEADING.findall(FENCE.sub("", text)))
    return {re.sub(r"[^\w-]", "", heading) for heading in headings}


@pytest.mark.parametrize("page", [*PAGES, *READMES], ids=lambda page: str(page.relative_to(ROOT)))
def test_links_of_a_page_lead_somewhere(page: Path) -> None:
    assert list(broken(page, page.read_text())) == []


def test_a_link_that_leads_nowhere_is_found() -> None:
    text = (
        "## Here, `too`\n[a](test_docs.py) [b](gone.md) [c](#here-too) [d](#there) [e](https://x.y/gone.md#z)\n"
        "```\n# no heading\n[f](code.md)\n```\n[g](../../README.md#what-to-expect) [h](../../README.md#gone)"
    )
    page = Path(__file__).with_name("page.md")
    assert list(broken(page, text)) == ["gone.md", "#there", "../../README.md#gone"]
