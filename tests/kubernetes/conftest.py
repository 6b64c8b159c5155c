"""The chart, rendered by the helm that set-up for tests has fetched."""

import pytest

from tests.kubernetes.chart import Chart


@pytest.fixture(scope="session")
def chart() -> Chart:
    """Renders are kept: the same values cost one call of helm."""
    return Chart()
