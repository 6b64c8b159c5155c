"""Writes the pages that the code decides: settings, metrics, exit codes, the chart's. `make docs`; a test compares."""

from pathlib import Path

from annotated_types import Ge, Le
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from pydantic_settings import BaseSettings

from bettong import metrics
from bettong.cli.exit_codes import AT_THE_START, MEANINGS
from bettong.config.client import ClientSettings
from bettong.config.connection_settings import ConnectionSettings
from bettong.config.processor import ProcessorSettings
from bettong.config.receiver import ReceiverSettings
from bettong.config.sender import SenderSettings
from bettong.config.service import PREFIX, ServiceSettings, ServingSettings
from bettong_node_tuner.settings import TunerSettings
from docs.render_chart import chart_pages, marks
from docs.render_roles import roles_page

HERE = Path(__file__).parent
GROUPS: dict[str, type[BaseSettings]] = {
    "Kafka and Redis": ConnectionSettings,
    "Every service": ServiceSettings,
    "Sender and receiver": ServingSettings,
    "Sender": SenderSettings,
    "Processor": ProcessorSettings,
    "Receiver": ReceiverSettings,
    "Clients": ClientSettings,
    "Node tuner": TunerSettings,
}


def pages() -> dict[Path, str]:
    """Each page's path and text."""
    return {
        HERE / "settings.md": _settings(),
        HERE / "metrics.md": _metrics(),
        HERE / "exit-codes.md": _exit_codes(),
        HERE / "kubernetes-roles.md": roles_page(),
        **chart_pages(),
    }


def _settings() -> str:
    lines = [
        "# Settings",
        "",
        "Environment variables, read and checked once when a service starts; all faults are reported at once. An",
        "empty variable counts as unset. The commands `bettong sender | processor | receiver` take each as a flag",
        "too (`--frame-bytes-max`). Rendered from `src/bettong/config`, and for the node tuner from its own, by",
        "`make docs`.",
    ]
    for title, kind in GROUPS.items():
        shared = {name for base in kind.__bases__ for name in getattr(base, "model_fields", {})}
        prefix = kind.model_config.get("env_prefix", PREFIX)
        lines += [
            "",
            f"## {title}",
            "",
            "| variable | default | range | what it is |",
            "| --- | --- | --- | --- |",
        ]
        for name, field in kind.model_fields.items():
            if name not in shared:
                lines.append(
                    f"| `{prefix}{name.upper()}` | {_default(field)} | {_range(field)} | {field.description} |"
                )
    return "\n".join(lines) + "\n"


def _default(field: FieldInfo) -> str:
    if field.default is PydanticUndefined:
        return f"`{field.examples[0]}`" if field.examples else "required"
    if field.default is None:
        return "-"
    return f"`{getattr(field.default, 'value', field.default)}`"


def _range(field: FieldInfo) -> str:
    least = next((mark.ge for mark in marks(field) if isinstance(mark, Ge)), None)
    most = next((mark.le for mark in marks(field) if isinstance(mark, Le)), None)
    return "" if least is None and most is None else f"{least} to {most}"


def _metrics() -> str:
    lines = [
        "# Live metrics",
        "",
        "What services write to Redis and `bettong status` shows: one record an instance, one a partition. Rendered",
        "from `src/bettong/metrics.py` by `make docs`.",
        "",
        "| metric | unit | what it says |",
        "| --- | --- | --- |",
        *(f"| `{metric.name}` | {metric.unit} | {metric.meaning} |" for metric in metrics.ALL),
        "",
        "## For Prometheus",
        "",
        "With `BETTONG_METRICS_LISTEN` a service serves what it last wrote to Redis over HTTP, at every path; a",
        "processor that of the partitions, too, which it reads from Redis for each scrape. Nothing is counted twice. A",
        "`_total` is a counter, which a restart may set back; all others are gauges. `stage`, `partition`, `sink` and",
        "`source` are names of the application. On Kubernetes: `metrics` and `serviceMonitor` in the chart's values.",
        "",
        "| series | labels | metric | of |",
        "| --- | --- | --- | --- |",
        *(
            f"| `{name}` | {labels or '-'} | {meaning} | every service |"
            for name, (labels, meaning) in metrics.BESIDE.items()
        ),
        *_series(),
    ]
    return "\n".join(lines) + "\n"


def _series() -> list[str]:
    """One row a name: quantiles of one metric each share theirs."""
    rows: dict[str, tuple[str, list[str], str]] = {}
    for each in metrics.SERIES:
        labels = {
            metrics.Scope.PARTITION: ("stage", "partition"),
            metrics.Scope.SERVICE: ("service",),
        }.get(each.scope, each.labels)
        if each.quantile:
            labels = (*labels, "quantile")
        unit = f" / {each.per:g}" if each.per != 1 else ""
        _, metric_values, _ = rows.setdefault(each.name, (", ".join(labels) or "-", [], each.scope))
        metric_values.append(f"`{each.metric.name}`{unit}")
    return [
        f"| `{name}` | {labels} | {', '.join(metric_values)} | {scope} |"
        for name, (labels, metric_values, scope) in rows.items()
    ]


def _exit_codes() -> str:
    lines = [
        "# Exit codes of `bettong`",
        "",
        "Rendered from `src/bettong/cli/exit_codes.py` by `make docs`.",
        "",
        "| code | what it means |",
        "| --- | --- |",
        *(f"| {code} | {meaning} |" for code, meaning in MEANINGS.items()),
        "",
        *AT_THE_START.splitlines(),
    ]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    for path, text in pages().items():
        path.write_text(text)
