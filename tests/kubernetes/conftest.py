"""The chart, rendered by the helm that set-up for tests has fetched."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.kubernetes.building import CHART_TOOLS, CONTROL_PLANE
from tests.kubernetes.chart import Chart
from tests.kubernetes.control_plane import ControlPlane
from tests.kubernetes.spaces import Space
from tests.servers.prometheus import is_installed


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leaves out what needs programs that are not built; tests/conftest.py says so."""
    left_out = [item for item in items if not _has_its_programs(item)]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]


def _has_its_programs(item: pytest.Item) -> bool:
    wanted = [CHART_TOOLS[marker.args[0]] for marker in item.iter_markers("chart_tool")]
    if item.get_closest_marker("cluster"):
        wanted.append(CONTROL_PLANE)
    asks_prometheus = item.get_closest_marker("prometheus") is not None
    return all(tools.are_built() for tools in wanted) and (not asks_prometheus or is_installed())


@pytest.fixture(scope="session")
def chart() -> Chart:
    """Renders are kept: the same values cost one call of helm."""
    return Chart()


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ControlPlane]:
    """Of a file: idle, it takes in two minutes what a start takes, and many other tests come behind these."""
    with ControlPlane(tmp_path_factory.mktemp("cluster")) as found:
        yield found


@pytest.fixture
def space(cluster: ControlPlane, tmp_path: Path, unique_name: Callable[..., str]) -> Iterator[Space]:
    found = Space(cluster, unique_name("space"), tmp_path)
    yield found
    cluster.kubectl("delete", "namespace", found.name, "--wait=false")
