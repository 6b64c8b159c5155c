"""Where each page of the site stands in its navigation.

Learn, Guide and Cookbook are folders: a page stands where its index first links to it. The others are named here. A
page that has no place fails the build, and a test. Pure: knows paths and texts, reads no file. A path is from docs/.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Mapping, Sequence

# A page, or a group of them below a title.
Entry = str | dict[str, "str | list[Entry]"]

FOLDERS = {"Learn": "learn", "Guide": "guide", "Cookbook": "cookbook"}
NAMED: dict[str, list[Entry]] = {
    "Reference": [
        {"Streams": ["streams.md", "speeds.md", "windows.md", "joins.md", "timers.md", "time.md"]},
        {"In and out": ["schemas.md", "sources.md", "sinks.md", "spark.md"]},
        {"Proof": ["testing.md", "faults.md", "delivery.md", "semantics.md"]},
        {
            "API": [
                "reference/index.md",
                "reference/pipelines.md",
                "reference/windows.md",
                "reference/timers.md",
                "reference/joins.md",
                "reference/schemas.md",
                "reference/sources-and-sinks.md",
                "reference/clients.md",
                "reference/testing.md",
                "reference/inspection.md",
                "reference/spark.md",
                "reference/errors.md",
            ]
        },
        {"Commands and settings": ["cli.md", "exit-codes.md", "settings.md", "status-json.md"]},
        "wire.md",
        "examples.md",
    ],
    "Operate": [
        "install.md",
        "operations.md",
        "console.md",
        "metrics.md",
        "traces.md",
        "lab.md",
        "security.md",
        {
            "Kubernetes": [
                "kubernetes-start.md",
                "kubernetes.md",
                "kubernetes-pinning.md",
                "kubernetes-roles.md",
                "node-tuning.md",
                "images.md",
                "charts.md",
                "tree/deploy/helm/bettong/readme.md",
                "tree/deploy/helm/bettong-node-tuning/readme.md",
            ]
        },
    ],
    "Internals": [
        "architecture.md",
        {
            "Performance": [
                "performance.md",
                "performance-peers.md",
                "performance-latency.md",
                "performance-state.md",
                "performance-profiles.md",
                "performance-history.md",
            ]
        },
        "nexmark.md",
        "tree/CONTRIBUTING.md",
        {"Decisions": ["decisions/index.md"]},
    ],
}
LAST = ["glossary.md"]
_LINK = re.compile(r"\]\(([^)#\s:]+\.md)[^)]*\)")
_HEADING = re.compile(r"^# (.+)$", re.MULTILINE)


def navigation(texts: Mapping[str, str]) -> list[Entry]:
    """Of a site with these pages, as mkdocs takes it. Names without a page are passed over."""
    tabs: list[Entry] = [{"Start": "index.md"}]
    for title, folder in FOLDERS.items():
        if pages := in_order(folder, texts):
            tabs.append({title: [_titled(page, texts) for page in pages]})
    decisions = sorted(page for page in texts if re.match(r"decisions/\d", page))
    for title, entries in NAMED.items():
        if found := _there(entries, texts, decisions):
            tabs.append({title: found})
    return tabs + [_titled(page, texts) for page in LAST if page in texts]


def without_a_place(texts: Mapping[str, str]) -> list[str]:
    """Pages of docs/ that the navigation does not have."""
    placed = set(_pages(navigation(texts)))
    return sorted(page for page in texts if page not in placed and not page.startswith("tree/"))


def in_order(folder: str, texts: Mapping[str, str]) -> list[str]:
    """The pages of a folder: its index, those that this links to, in the order of the links, then others by name."""
    pages = sorted(page for page in texts if posixpath.dirname(page) == folder)
    index = f"{folder}/index.md"
    linked = [f"{folder}/{link}" for link in _LINK.findall(texts.get(index, ""))]
    first = [page for page in dict.fromkeys([index, *linked]) if page in pages]
    return first + [page for page in pages if page not in first]


def short_title(text: str) -> str:
    """The first heading of a page, up to a colon."""
    found = _HEADING.search(text)
    return found[1].partition(": ")[0].replace("`", "") if found else ""


def decisions_index(texts: Mapping[str, str]) -> str:
    """The page that lists the decision records."""
    lines = [
        "# Decisions",
        "",
        "For anyone who changes Bettong, or asks why it is as it is: what was decided, what led there, and what was",
        "rejected. A record stays as it was written, but for names of what has moved since.",
        "",
    ]
    for page in sorted(page for page in texts if re.match(r"decisions/\d", page)):
        heading = _HEADING.search(texts[page])
        title = heading[1] if heading else page
        lines.append(f"- [{title}]({posixpath.basename(page)})")
    return "\n".join(lines) + "\n"


def _there(entries: Sequence[Entry], texts: Mapping[str, str], decisions: Sequence[str]) -> list[Entry]:
    found: list[Entry] = []
    for entry in entries:
        if isinstance(entry, str):
            if entry in texts:
                found.append(_titled(entry, texts))
            continue
        for title, below in entry.items():
            more = decisions if title == "Decisions" else ()
            if inner := _there([*below, *more], texts, ()):
                found.append({title: inner})
    return found


def _titled(page: str, texts: Mapping[str, str]) -> Entry:
    if posixpath.basename(page) == "index.md":
        return page  # the title of its section
    return {short_title(texts[page]): page}


def _pages(entries: Sequence[Entry]) -> list[str]:
    found: list[str] = []
    for entry in entries:
        for below in [entry] if isinstance(entry, str) else entry.values():
            found += [below] if isinstance(below, str) else _pages(below)
    return found
