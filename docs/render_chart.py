"""The chart's README.md, out of the comments in values.yaml, and the settings in its schema.

A comment above a key describes it. Lists and maps in one line are one value.
"""

import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from typing import Any

from annotated_types import Ge, Le
from pydantic.fields import FieldInfo

from bettong.settings import ProcessorSettings, ReceiverSettings, SenderSettings, ServiceSettings

CHART = Path(__file__).parent.parent / "deploy" / "helm" / "bettong"
KINDS: tuple[type[ServiceSettings], ...] = (SenderSettings, ProcessorSettings, ReceiverSettings)
# What the chart decides: addresses and folders of its own objects, and what differs from pod to pod.
DECIDED = {
    "application",
    "checkpoint",
    "connection_age_max_s",
    "connections",
    "exclusive_cpus",
    "health_listen",
    "instance",
    "jars",
    "kafka",
    "kafka_ca",
    "kafka_certificate",
    "kafka_key",
    "kafka_mechanism",
    "kafka_password_file",
    "kafka_security",
    "kafka_user",
    "kernel_cache",
    "metrics_listen",
    "receiver_dir",
    "receiver_listen",
    "redis",
    "redis_ca",
    "redis_password_file",
    "redis_user",
    "sender_listen",
    "sender_topics",
    "spark_master",
    "state_dir",
    "tls_certificate",
    "tls_clients",
    "tls_key",
    "tokens",
}

_LINE = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z]+):(?: (?P<value>.*))?$")


@dataclass(frozen=True, slots=True)
class Value:
    """A line of the table: the path of a value, its default as it is written, and its comment."""

    path: str
    default: str
    comment: str


def chart_pages() -> dict[Path, str]:
    """Each page's path and text."""
    values = (CHART / "values.yaml").read_text().splitlines()
    schema = json.loads((CHART / "values.schema.json").read_text())
    schema["properties"]["settings"] = settings_schema()
    return {
        CHART / "README.md": _readme(list(described(values))),
        CHART / "values.schema.json": json.dumps(schema, indent=1) + "\n",
    }


def described(lines: Sequence[str]) -> Iterator[Value]:
    """The values of a values.yaml, in their order; those of sections have no default."""
    path: list[str] = []
    comment: list[str] = []
    for line in lines:
        text = line.strip()
        if text.startswith("# "):
            comment.append(text.removeprefix("# "))
        elif match := _LINE.match(line):
            depth = len(match["indent"]) // 2
            path = [*path[:depth], match["key"]]
            yield Value(".".join(path), match["value"] or "", " ".join(comment))
            comment = []
        else:
            comment = []


def settings_schema() -> dict[str, Any]:
    """What `settings` may hold: every setting of every service but those that the chart decides."""
    fields = {name: field for kind in KINDS for name, field in kind.model_fields.items()}
    return {
        "type": "object",
        "additionalProperties": False,
        "properties": {name: _of(field) for name, field in sorted(fields.items()) if name not in DECIDED},
    }


def _of(field: FieldInfo) -> dict[str, Any]:
    found: dict[str, Any] = {"description": field.description}
    kind = field.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {**found, "enum": [each.value for each in kind]}
    found["type"] = {bool: "boolean", int: "integer"}.get(kind, "string")  # type: ignore[arg-type]
    for mark in field.metadata:
        if isinstance(mark, Ge):
            found["minimum"] = mark.ge
        if isinstance(mark, Le):
            found["maximum"] = mark.le
        if pattern := getattr(mark, "pattern", None):
            found["pattern"] = pattern
    return found


def _readme(values: list[Value]) -> str:
    lines = [
        "# The chart `bettong`",
        "",
        "Senders, a Spark cluster (master, workers, driver) and a receiver, for one application. How to use it, and",
        "why it is as it is: [docs/kubernetes.md](../../../docs/kubernetes.md). Rendered from values.yaml by",
        "`make docs`.",
        "",
        "| value | default | what it is |",
        "| --- | --- | --- |",
    ]
    for value in values:
        if not (value.default or value.comment):
            continue
        default = f"`{value.default}`".replace("|", "\\|") if value.default else ""
        lines.append(f"| `{value.path}` | {default} | {value.comment} |")
    return "\n".join(lines) + "\n"
