"""Debian's Chromium, without a window: its headless shell."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager

from playwright.sync_api import Browser, Page, expect, sync_playwright

from deploy.setup_plan import CHROMIUM

# No sandbox, for tests may run as root; and nothing that asks the network by itself.
_FLAGS = [
    *("--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-sync"),
    *("--disable-background-networking", "--disable-component-update"),
]

# What comes in time on a machine that is busy with other tests.
expect.set_options(timeout=20_000)


@contextmanager
def chromium() -> Iterator[Browser]:
    """`make test` installs it; without it tests fail, and say so."""
    program = shutil.which(CHROMIUM.program)
    assert program is not None, f"{CHROMIUM.program} is missing: make test installs it"
    with sync_playwright() as playwright:
        found = playwright.chromium.launch(executable_path=program, args=_FLAGS)
        yield found
        found.close()


@contextmanager
def watched_page(browser: Browser, faults: list[str], *, timezone: str) -> Iterator[Page]:
    """A page of a fresh browser. Its errors go to `faults`: none may be left."""
    context = browser.new_context(timezone_id=timezone)
    context.set_default_timeout(10_000)
    found = context.new_page()
    found.on("console", lambda said: faults.append(said.text) if said.type in {"error", "warning"} else None)
    found.on("pageerror", lambda error: faults.append(str(error)))
    found.on("dialog", lambda dialog: faults.append(f"dialog {dialog.message}"))
    yield found
    context.close()
    assert faults == []
