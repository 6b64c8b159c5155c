"""What mkdocs calls while it builds the site: gives it the pages of the tree, and looks at what it made.

Reads and decides nothing by itself: navigation.py, links.py and external.py do.
"""

from __future__ import annotations

import logging
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

from docs.site.external import external_addresses
from docs.site.links import DOCS, as_page, for_site, place, targets
from docs.site.navigation import decisions_index, navigation, short_title, without_a_place

ROOT = Path(__file__).resolve().parents[2]
_READMES_OF_CHARTS = sorted(str(each.relative_to(ROOT)) for each in ROOT.glob("deploy/helm/*/README.md"))
_ALWAYS = ("README.md", "CONTRIBUTING.md", *_READMES_OF_CHARTS)
# A warning fails a strict build.
_LOG = logging.getLogger("mkdocs.hooks.site")


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Adds the pages that docs/ does not have: of linked files of the tree, and the list of decisions."""
    texts = {each.src_uri: each.content_string for each in files.documentation_pages()}
    config.extra["paths"] = paths = {page: DOCS + page for page in texts}
    waiting = [target for page, text in texts.items() for target in targets(DOCS + page, text)]
    waiting += _ALWAYS
    while waiting:
        path = waiting.pop()
        page = place(path)
        if path.startswith((DOCS, "..")) or page in texts or not (ROOT / path).is_file():
            continue
        text = (ROOT / path).read_text()
        texts[page] = text if path.endswith(".md") else as_page(path, text)
        paths[page] = path
        if path.endswith(".md"):
            waiting += targets(path, text)
        files.append(File.generated(config, page, content=texts[page]))
    texts["decisions/index.md"] = decisions_index(texts)
    files.append(File.generated(config, "decisions/index.md", content=texts["decisions/index.md"]))
    for page in without_a_place(texts):
        _LOG.warning("%s has no place in the navigation: name it in docs/site/navigation.py", page)
    config.nav = navigation(texts)
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Leads links to files of the tree to their pages."""
    paths = config.extra["paths"]
    path = paths.get(page.file.src_uri, DOCS + page.file.src_uri)

    def title_of(target: str) -> str | None:
        file = files.get_file_from_path(place(target))
        return (
            None if file is None else short_title(file.content_string) if file.is_documentation_page() else ""
        )

    return for_site(path, markdown, title_of) if path.endswith(".md") else markdown


def on_post_build(config: MkDocsConfig) -> None:
    """Looks for what the site would fetch from other hosts."""
    site = Path(config.site_dir)
    for file in sorted(site.rglob("*")):
        if file.suffix in {".html", ".css", ".svg"}:
            for address in external_addresses(file.name, file.read_text()):
                _LOG.warning("%s would fetch %s", file.relative_to(site), address)
