"""The site of docs/: each page has its place, links lead to pages of the site, nothing comes from elsewhere.

`make site` builds it, and fails on links and headings that are not there.
"""

import re
from collections import Counter
from importlib import import_module
from pathlib import Path

import pytest

from bettong.testing import run
from docs.site.external import external_addresses
from docs.site.links import as_page, for_site, place, targets
from docs.site.navigation import NAMED, decisions_index, in_order, navigation, short_title, without_a_place
from tests.samples.page_code import page_module

ROOT = Path(__file__).resolve().parents[2]
DOCS = ROOT / "docs"
TEXTS = {str(page.relative_to(DOCS)): page.read_text() for page in DOCS.rglob("*.md")}
MADE = {
    "decisions/index.md": decisions_index(TEXTS),
    "tree/CONTRIBUTING.md": (ROOT / "CONTRIBUTING.md").read_text(),
    **{place(str(each.relative_to(ROOT))): each.read_text() for each in ROOT.glob("deploy/helm/*/README.md")},
}
REFERENCE = sorted((DOCS / "reference").glob("*.md"))
SHOWN = re.compile(r"^::: ([\w.]+)$|^\| ((?:`bettong[\w.]+`(?:, )?)+) \|", re.MULTILINE)
NAMED_HERE = re.compile(r"`(bettong\.[\w.]+)`:")
PUBLIC = ("bettong", "bettong.client", "bettong.testing", "bettong.spark")


def pages_of(entries: object) -> list[str]:
    if isinstance(entries, str):
        return [entries]
    below = entries.values() if isinstance(entries, dict) else entries if isinstance(entries, list) else ()
    return [page for each in below for page in pages_of(each)]


def test_each_page_has_one_place_in_the_navigation() -> None:
    texts = TEXTS | MADE
    assert without_a_place(texts) == []
    assert [page for page, times in Counter(pages_of(navigation(texts))).items() if times > 1] == []


def test_pages_that_the_navigation_names_are_there() -> None:
    assert [page for page in pages_of(list(NAMED.values())) if page not in TEXTS | MADE] == []


@pytest.mark.parametrize("page", sorted(TEXTS))
def test_a_page_says_first_for_whom_it_is(page: str) -> None:
    # Of a decision, a step and a recipe the index of the folder says it.
    if page.startswith(("decisions/", "learn/", "cookbook/")) and not page.endswith("/index.md"):
        return
    heading, first = TEXTS[page].split("\n\n")[:2]
    assert heading.startswith("# ")
    assert first.startswith("For ")


@pytest.mark.parametrize("page", sorted(TEXTS))
def test_pictures_are_files_and_no_text_for_a_script_of_another_host(page: str) -> None:
    assert "```mermaid" not in TEXTS[page], "the site does not draw it: make an SVG in docs/images"


def test_the_code_of_the_start_page_adds_up_payments() -> None:
    page = page_module(DOCS / "index.md")
    payments = [("payments", page.Payment("ann", 12.5)), ("payments", page.Payment("ann", 1.0))]
    assert run(page.app, payments).outputs["totals"] == [page.Payment("ann", 12.5), page.Payment("ann", 13.5)]


def test_a_page_without_a_place_is_found() -> None:
    assert without_a_place({"index.md": "", "lost.md": "# Lost", "learn/index.md": "", "tree/x.md": ""}) == [
        "lost.md"
    ]


def test_pages_of_a_folder_stand_in_the_order_of_the_links_of_their_index_and_others_by_name() -> None:
    index = "[z](z.md) [y](y.md#there) [z](z.md) [out](../time.md) [gone](gone.md)"
    texts = {"learn/index.md": index, "learn/a.md": "", "learn/y.md": "", "learn/z.md": "", "time.md": ""}
    assert in_order("learn", texts) == ["learn/index.md", "learn/z.md", "learn/y.md", "learn/a.md"]
    assert in_order("cookbook", texts) == []


def test_a_title_in_the_navigation_ends_at_a_colon() -> None:
    assert short_title("text\n# `bettong top`: what it shows\n## More") == "bettong top"


@pytest.mark.parametrize(
    ("path", "link", "expected"),
    [
        ("docs/guide/index.md", "../../README.md#first", "../tree/readme.md#first"),
        ("docs/time.md", "../examples/a.py", "tree/examples/a.py.md"),
        ("docs/time.md", "../examples/gone.py", "../examples/gone.py"),
        ("docs/time.md", "guide/index.md#x", "guide/index.md#x"),
        ("README.md", "docs/time.md", "../time.md"),
        ("deploy/helm/chart/README.md", "../../../docs/time.md", "../../../../time.md"),
    ],
)
def test_a_link_leads_to_the_page_of_its_file(path: str, link: str, expected: str) -> None:
    titles = dict.fromkeys(("README.md", "examples/a.py", "docs/time.md", "docs/guide/index.md"), "A title")
    assert for_site(path, f"See [it]({link}).", titles.get) == f"See [it]({expected})."


def test_a_link_that_is_called_by_its_files_name_is_called_by_the_title_of_its_page() -> None:
    titles = {"docs/time.md": "Time", "docs/a.json": ""}
    text = "[docs/time.md](docs/time.md#x) [time](docs/time.md) [a.json](docs/a.json) [gone.md](gone.md)"
    expected = "[Time](../time.md#x) [time](../time.md) [a.json](../a.json) [gone.md](gone.md)"
    assert for_site("README.md", text, titles.get) == expected


def test_code_and_other_hosts_are_left_alone() -> None:
    text = "```\n[a](../examples/a.py)\n- b\n```\n[c](https://x.y/z.md) [d](#here)\n"
    assert for_site("docs/time.md", text, lambda _: "") == text
    assert list(targets("docs/time.md", text + "[e](../a.py)")) == ["a.py"]


def test_a_list_is_set_apart_from_the_paragraph_before_it() -> None:
    text = "Both:\n- one\n  goes on\n- two\n\n1. three\n2. four\n```\nx\n- y\n```\n"
    assert for_site("docs/a.md", text, lambda _: "") == text.replace("Both:\n", "Both:\n\n")


def test_a_file_is_shown_as_code_whatever_it_holds() -> None:
    assert as_page("a/b.py", "x = '```'\n") == "# a/b.py\n\n````python\nx = '```'\n````\n"


@pytest.mark.parametrize(
    ("name", "text", "expected"),
    [
        ("a.html", '<script src="https://x.y/z.js"></script>', ["https://x.y/z.js"]),
        ("a.html", '<link rel="stylesheet" href="//x.y/z.css">', ["//x.y/z.css"]),
        ("a.html", '<p style="background: url(https://x.y/z.png)">', ["https://x.y/z.png"]),
        ("a.html", '<a href="https://x.y"><img src="a.png"></a>', []),
        ("a.css", "@import 'https://x.y/z.css'; a { background: url(a.png) }", ["https://x.y/z.css"]),
        ("a.svg", '<svg xmlns="http://www.w3.org/2000/svg"/>', []),
    ],
)
def test_what_comes_from_another_host_is_found(name: str, text: str, expected: list[str]) -> None:
    assert list(external_addresses(name, text)) == expected


def shown(page: Path) -> list[str]:
    """Names that a page of the reference shows, by their docstrings or in a table."""
    text = page.read_text()
    found = [directive or row for directive, row in SHOWN.findall(text)]
    return [name for each in found for name in re.findall(r"[\w.]+", each)] + NAMED_HERE.findall(text)


def test_every_public_name_is_in_the_reference_once() -> None:
    names = Counter(name for page in REFERENCE for name in shown(page))
    public = {f"{module}.{name}" for module in PUBLIC for name in import_module(module).__all__}
    assert sorted(public - set(names) - {"bettong.NEVER", "bettong.testing.END"}) == []
    assert [name for name, times in names.items() if times > 1] == []


def test_what_the_reference_shows_is_there() -> None:
    for name in [name for page in REFERENCE for name in shown(page)]:
        module, _, attribute = name.rpartition(".")
        assert hasattr(import_module(module), attribute), name


def test_constants_are_named_in_the_text_of_the_reference() -> None:
    text = "".join(page.read_text() for page in REFERENCE)
    assert "`bettong.NEVER`" in text
    assert "`bettong.testing.END`" in text


def test_words_of_the_glossary_are_in_the_order_of_the_alphabet_each_once_and_short() -> None:
    words = re.findall(r"^## (.+)\n\n(.+(?:\n.+)*)$", TEXTS["glossary.md"], re.MULTILINE)
    names = [name.lower().replace("-", "") for name, _ in words]
    assert names == sorted(set(names))
    assert len(names) > 40
    assert [name for name, said in words if len(re.sub(r"\]\([^)]*\)", "", said)) > 320] == []
