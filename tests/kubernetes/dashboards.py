"""The dashboards of the chart, and what lies on them."""

import json
from collections.abc import Iterator
from typing import Any

from docs.render_dashboards import dashboard_pages

DASHBOARDS: dict[str, dict[str, Any]] = {
    path.stem: json.loads(text) for path, text in dashboard_pages().items()
}


def panels(dashboard: dict[str, Any], *, rows: bool = False) -> Iterator[dict[str, Any]]:
    for each in dashboard["panels"]:
        if (each["type"] == "row") == rows:
            yield each
