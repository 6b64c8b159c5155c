"""A page of a browser, for tests of what a person sees."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, Page

from tests.console.browsers import chromium, watched_page


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
    """Nothing it does may break the policy, or fail."""
    with watched_page(browser, faults, timezone="Europe/Berlin") as found:
        yield found
