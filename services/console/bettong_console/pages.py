"""The files of the page, read once: nothing else is served, whatever the path."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from starlette.requests import Request
from starlette.responses import Response

FOLDER = Path(__file__).parent / "page"
_KINDS = {
    ".css": "text/css; charset=utf-8",
    ".html": "text/html; charset=utf-8",
    ".js": "text/javascript; charset=utf-8",
    ".mjs": "text/javascript; charset=utf-8",
    ".svg": "image/svg+xml",
    ".woff2": "font/woff2",
}


@dataclass(frozen=True, slots=True)
class PageFile:
    """A file as it is served."""

    content: bytes
    kind: str
    tag: str

    def answer(self, request: Request, status: int = 200) -> Response:
        """The file, or status 304 if it has not changed."""
        headers = {"etag": self.tag, "cache-control": "no-cache"}
        if status == 200 and request.headers.get("if-none-match") == self.tag:
            return Response(status_code=304, headers=headers)
        return Response(self.content, status, headers, self.kind)


def page_files(folder: Path = FOLDER) -> dict[str, PageFile]:
    """All files, by their path below the folder."""
    return {
        str(path.relative_to(folder)): _read(path)
        for path in sorted(folder.rglob("*"))
        if path.suffix in _KINDS
    }


def _read(path: Path) -> PageFile:
    content = path.read_bytes()
    return PageFile(content, _KINDS[path.suffix], f'"{hashlib.sha256(content).hexdigest()[:16]}"')
