"""The pages of `bettong status --json`, and the picture of `bettong top`, rendered from the code by `make docs`."""

import asyncio
import json
import re
from pathlib import Path

from bettong.cli.top.app import TopApp
from bettong.cli.top.lines import Picture
from bettong.inspection.described_form import Described
from bettong.inspection.status_form import PARTS, VERSION, StatusForm
from tests.samples.watched_deployment import BEGUN_S, watched_for

HERE = Path(__file__).parent
_SECONDS = 60
_SIZE = (100, 24)
_TITLES = {
    "StatusForm": "The object",
    "ServiceStatus": "A service, in `services`",
    "TotalStatus": "The whole, in `total`",
    "StageStatus": "A stage, in `stages`",
    "PartitionStatus": "A partition, in `partitions`",
    "SnapshotStatus": "Its newest snapshot, in `snapshot`",
    "HotKeyStatus": "A key of it, in `hot_keys`",
    "SinkStatus": "A sink, in `sinks`",
    "PartStatus": "A part of its latency, in `parts`",
    "ComputationStatus": "A computation, in `computations`",
    "InputWatermarkStatus": "An input by event time, in `input_watermarks`",
    "OpenWindowStatus": "A window, in `open_windows`",
    "QueueStatus": "A queue, in `queues`",
    "ClientStatus": "A client, in `clients`",
    "SubscriberStatus": "A subscriber, in `subscribers`",
}


def status_pages() -> dict[Path, str]:
    """Each page's path and text."""
    schema = StatusForm.model_json_schema(mode="serialization")
    return {
        HERE / "status-json.md": _status_json(),
        HERE / "status.schema.json": json.dumps(schema, indent=2) + "\n",
        HERE / "top.svg": top_picture(),
    }


def _status_json() -> str:
    lines = [
        "# `bettong status --json`",
        "",
        "For anyone who asks from a script what runs.",
        "",
        f"One JSON object on standard output, form {VERSION}; exit code 0 when all works, else 7. What is not known",
        "is `null`, never a number that is wrong. Within a version fields may be added, so pass over names that you do",
        "not know; none is taken away, renamed, or given another meaning or unit. As a JSON schema:",
        "[status.schema.json](status.schema.json). Rendered from `src/bettong/inspection/status_form.py`.",
        "",
        "```sh",
        "bettong status --json | jq '.partitions[] | select(.stands_still) | {stage, partition, lag_records}'",
        "bettong status --json --redis URL --application NAME --kafka HOST:PORT | jq .total.latency_p99_ms",
        "```",
    ]
    for part in PARTS:
        lines += [
            "",
            f"## {_TITLES[part.__name__]}",
            "",
            "| field | unit | what it says |",
            "| --- | --- | --- |",
            *_fields(part),
        ]
    return "\n".join(lines) + "\n"


def _fields(part: type[Described]) -> list[str]:
    found = []
    for name, field in part.model_fields.items():
        extra = field.json_schema_extra
        assert isinstance(extra, dict), f"{part.__name__}.{name} has a unit"  # noqa: S101 - it ends the rendering
        found.append(f"| `{name}` | {extra['unit']} | {field.description} |")
    return found


def top_picture() -> str:
    """The first page of `bettong top`, as an SVG that loads nothing from elsewhere."""
    return asyncio.run(_drawn())


async def _drawn() -> str:
    found = watched_for(_SECONDS)
    end_s = _SECONDS - 1.0
    app = TopApp(lambda: end_s, lambda: BEGUN_S + end_s)
    async with app.run_test(size=_SIZE) as pilot:
        app.post_message(TopApp.Shown(Picture(found)))
        await pilot.pause()
        await pilot.pause()
        drawn = app.export_screenshot(title="bettong top")
    for elsewhere in (r"@font-face \{.*?\}\s*", r"<!--.*?-->\s*", "Fira Code, *"):
        drawn = re.sub(elsewhere, "", drawn, flags=re.DOTALL)
    return drawn.strip() + "\n"
