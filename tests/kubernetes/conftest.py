"""The chart, rendered by the helm that set-up for tests has fetched."""

import pytest

from tests.kubernetes.building import are_built
from tests.kubernetes.chart import Chart


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what needs a control plane where there is none; tests/conftest.py says so."""
    if are_built():
        return
    left_out = [item for item in items if item.get_closest_marker("cluster")]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


@pytest.fixture(scope="session")
def chart() -> Chart:
    """Renders are kept: the same values cost one call of helm."""
    return Chart()
