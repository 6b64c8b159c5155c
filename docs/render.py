"""Writes the pages that the code decides, from settings to the chart's values: `make docs`. A test compares."""

from pathlib import Path

from annotated_types import Ge, Le
from pydantic.fields import FieldInfo
from pydantic_core import PydanticUndefined
from pydantic_settings import BaseSettings

from bettong import metric_series, metrics
from bettong.cli.exit_codes import AT_THE_START, MEANINGS
from bettong.config.client import ClientSettings
from bettong.config.connection_settings import ConnectionSettings
from bettong.config.console import ConsoleSettings
from bettong.config.reading import settings_class
from bettong.config.service import PREFIX, ServiceSettings, ServingSettings
from bettong.latency import BOUNDS_S
from bettong.services import SERVICES
from bettong_node_tuner.settings import TunerSettings
from docs.render_chart import chart_pages, marks
from docs.render_cli import cli_page
from docs.render_dashboards import dashboard_pages
from docs.render_roles import roles_page
from docs.render_status import status_pages

HERE = Path(__file__).parent
GROUPS: dict[str, type[BaseSettings]] = {
    "Kafka and Redis": ConnectionSettings,
    "Every service": ServiceSettings,
    "Sender and receiver": ServingSettings,
    **{each.name.capitalize(): settings_class(each) for each in SERVICES.values()},
    "Console": ConsoleSettings,
    "Clients": ClientSettings,
    "Node tuner": TunerSettings,
}

QUERIES = {
    "p99 from a client's send time to delivery": "histogram_quantile(0.99, sum by (le)"
    " (rate(bettong_receiver_latency_seconds_bucket[5m])))",
    "the same for each sink": "histogram_quantile(0.99, sum by (le, sink)"
    " (rate(bettong_receiver_sink_latency_seconds_bucket[5m])))",
    "where the time goes: the mean of each part, which add up": "sum by (sink, part)"
    " (rate(bettong_receiver_latency_part_seconds_sum[5m])) / sum by (sink, part)"
    " (rate(bettong_receiver_latency_part_seconds_count[5m]))",
    "p99 of each part; these add up to nothing": "histogram_quantile(0.99, sum by (le, sink, part)"
    " (rate(bettong_receiver_latency_part_seconds_bucket[5m])))",
    "p99 of folding, for each stage over all its partitions": "histogram_quantile(0.99, sum by (le, stage)"
    " (rate(bettong_partition_latency_seconds_bucket[5m])))",
    "the mean": "sum(rate(bettong_receiver_latency_seconds_sum[5m]))"
    " / sum(rate(bettong_receiver_latency_seconds_count[5m]))",
    "an alert when less than 99 in 100 come within 0.5 s": 'sum(rate(bettong_receiver_latency_seconds_bucket{le="0.5"}'
    "[5m])) / sum(rate(bettong_receiver_latency_seconds_count[5m])) < 0.99",
}


def pages() -> dict[Path, str]:
    """Each page's path and text."""
    return {
        HERE / "settings.md": _settings(),
        HERE / "metrics.md": _metrics(),
        HERE / "exit-codes.md": _exit_codes(),
        HERE / "cli.md": cli_page(),
        HERE / "kubernetes-roles.md": roles_page(),
        **chart_pages(),
        **dashboard_pages(),
        **status_pages(),
    }


def _settings() -> str:
    lines = [
        "# Settings",
        "",
        "For anyone who runs a service, by hand or in a container.",
        "",
        "Environment variables, read and checked once when a service starts; all faults are reported at once. An",
        f"empty variable counts as unset. The commands `bettong {' | '.join(SERVICES)}` take each as a flag",
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
        "For anyone who watches what runs: in `bettong status`, or with Prometheus.",
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
        "`BETTONG_METRICS_LISTEN=127.0.0.1:9100 bettong up app.py` (or `run`) gives each process a port of its own,",
        "from that one on, or free ones where the port is 0; it prints their addresses, as `bettong status` does.",
        "",
        "With `BETTONG_METRICS_LISTEN` a service serves what it last wrote to Redis over HTTP, at every path; a",
        "processor that of the partitions, too, which it reads from Redis for each scrape. Nothing is counted twice. A",
        "`_total` is a counter, which a restart may set back; latencies are histograms (`_bucket`, `_sum`, `_count`),",
        "which it sets back too; all others are gauges. `stage`, `partition`, `computation`, `sink`, `source` and",
        "`join` are names of the application, `part` is a part of a latency",
        "([operations.md](operations.md#the-parts-of-a-latency)). On Kubernetes: `metrics`, `serviceMonitor`, `alerts`",
        "([what to do](operations.md#alerts)) and `dashboards` in the chart's values.",
        "",
        "The counters of a partition, and what a receiver has delivered, are part of the fold: a new process goes on",
        "from where they were saved, which may be a little less. `rate` and `increase` take a smaller count for a new",
        "beginning and count all of it once more; `deriv` and `delta` do not, and alerts and dashboards ask by these.",
        "Counters of senders, and latencies, begin at 0 with their process, so `rate` is right for them.",
        "",
        "| series | labels | metric | of |",
        "| --- | --- | --- | --- |",
        *(
            f"| `{name}` | {labels or '-'} | {meaning} | every service |"
            for name, (labels, meaning) in metric_series.BESIDE.items()
        ),
        *_series(),
        *_queries(),
    ]
    return "\n".join(lines) + "\n"


def _series() -> list[str]:
    rows = []
    for each in metrics.SERIES:
        labels = {
            metric_series.Scope.PARTITION: ("stage", "partition"),
            metric_series.Scope.COMPUTATION: ("stage", "partition", "computation"),
            metric_series.Scope.SERVICE: ("service",),
        }.get(each.scope, each.labels)
        unit = f" / {each.per:g}" if each.per != 1 else ""
        part = f", `{each.part}`" if each.part else ""
        row = f"| `{each.name}` | {', '.join(labels) or '-'} | `{each.metric.name}`{part}{unit} | {each.scope} |"
        rows.append(row)
    return rows


def _queries() -> list[str]:
    return [
        "",
        "### Latencies",
        "",
        f"They are histograms with bounds of {', '.join(f'{bound:g}' for bound in BOUNDS_S)} s and one without. Counts",
        "of several instances, partitions and sinks may be added up, which quantiles may not; and a quantile is of the",
        "time that the query names. It lies within its bucket: a factor of three at most, between 1 ms and 60 s.",
        "A receiver counts messages, a partition of the resident schedule frames put out. What `bettong status` shows",
        "(`latency_p50_ms`, `latency_p99_ms`, `latency_max_ms`) is more exact, of one instance and of late, and not",
        "served here.",
        "",
        "| question | query |",
        "| --- | --- |",
        *(f"| {question} | `{query}` |" for question, query in QUERIES.items()),
    ]


def _exit_codes() -> str:
    lines = [
        "# Exit codes of `bettong`",
        "",
        "For anyone who calls `bettong` from a script. Rendered from `src/bettong/cli/exit_codes.py` by `make docs`.",
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
