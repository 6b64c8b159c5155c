"""A page of a browser, for tests of what a person sees."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.console.browsers import chromium


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """One browser for all tests."""
    with chromium() as found:
        yield found


@pytest.fixture
def faults() -> list[str]:
    """What the page complained about: none may be left when a test ends."""
    return []


@pytest.fixture
def page(browser: Browser, faults: list[str]) -> Iterator[Page]:
    """A page of a browser that knows nothing yet; nothing it does may break the policy, or fail."""
    context = browser.new_context(timezone_id="Europe/Berlin")
    context.set_default_timeout(10_000)
    found = context.new_page()
    found.on("console", lambda said: faults.append(said.text) if said.type in {"error", "warning"} else None)
    found.on("pageerror", lambda error: faults.append(str(error)))
    found.on("dialog", lambda dialog: faults.append(f"dialog {dialog.message}"))
    yield found
    context.close()
    assert faults == []
