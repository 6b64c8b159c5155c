"""The dashboards of the chart, rendered into its `files` by `make docs`. What they show: `docs/dashboards`."""

from pathlib import Path

from docs.dashboards.grafana import rendered
from docs.dashboards.overview import OVERVIEW
from docs.dashboards.partitions import PARTITIONS
from docs.dashboards.services import SERVICES

FOLDER = Path(__file__).parent.parent / "deploy" / "helm" / "bettong" / "files" / "dashboards"
_ALL = (OVERVIEW, PARTITIONS, SERVICES)


def dashboard_pages() -> dict[Path, str]:
    """Each file's path and text."""
    return {
        FOLDER / f"{each.name}.json": rendered(
            each, {other.name: other.title for other in _ALL if other is not each}
        )
        + "\n"
        for each in _ALL
    }
