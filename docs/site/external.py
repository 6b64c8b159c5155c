"""What a built page would fetch from another host: scripts, styles, fonts, pictures. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html.parser import HTMLParser

# Attributes by which a browser fetches something at once; `href` of `a` waits for a click.
_FETCHING = {"src", "srcset", "poster", "data"}
_REMOTE = re.compile(r"^(?:\w+:)?//")
_CSS = re.compile(r"(?:url\(|@import)\s*[\"']?((?:\w+:)?//[^\"')\s;]+)")


def external_addresses(name: str, text: str) -> Iterator[str]:
    """What a file of the site would fetch from elsewhere. `name`: its ending says how it is read."""
    if name.endswith(".html"):
        page = _Page()
        page.feed(text)
        page.close()
        yield from page.found
    elif name.endswith((".css", ".svg")):
        yield from _CSS.findall(text)


class _Page(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.found: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        values = {name: value or "" for name, value in attrs}
        fetched = _FETCHING | ({"href"} if tag in {"link", "image", "use"} and _loads(values) else set())
        self.found += [value for name, value in values.items() if name in fetched and _REMOTE.match(value)]
        self.found += _CSS.findall(values.get("style", ""))


def _loads(values: dict[str, str]) -> bool:
    return values.get("rel") not in {"canonical", "prev", "next", "edit", "author"}
