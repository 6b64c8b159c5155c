"""When Python looks for garbage while tests run: rarely, as in services. Also a plugin of pytest by itself."""

import gc
from collections.abc import Generator

import pytest

from bettong.garbage import CollectionPaused

# Services have few cycles, and look at 100,000, 50 and 1,000 (`bettong.garbage`); a process of tests compiles hundreds
# of functions, and would hold too much of what only this search frees. At Python's own (700, 10, 10) it took 9 % of the
# unit tests' time, though what was imported is left out.
_THRESHOLDS = (20_000, 20, 10)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """What is imported stays: Python's collector would look at it again and again, for 8 % of the unit tests' time.

    What tests make is looked at as ever, but not as often.
    """
    with CollectionPaused():
        collected = yield
    gc.freeze()
    gc.set_threshold(*_THRESHOLDS)
    return collected
