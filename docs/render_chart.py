"""The README.md of each chart, out of the comments in its values.yaml, and the settings in its schema.

A comment above a key describes it. Lists and maps in one line are one value.
"""

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from pathlib import Path
from types import NoneType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin

from annotated_types import Ge, Le
from pydantic.fields import FieldInfo
from pydantic_settings import BaseSettings

from bettong.config.console import ConsoleSettings
from bettong.config.reading import settings_class
from bettong.config.service import ServiceSettings
from bettong.services import SERVICES
from bettong_node_tuner.settings import TunerSettings

CHARTS = Path(__file__).parent.parent / "deploy" / "helm"
KINDS: tuple[type[ServiceSettings], ...] = (*map(settings_class, SERVICES.values()), ConsoleSettings)
# What the chart decides: addresses and folders of its own objects, what differs from pod to pod, and what is for one
# machine alone (`reload`, with which the driver of a cluster does not start).
DECIDED = {
    "application",
    "checkpoint",
    "connection_age_max_s",
    "connections",
    "console_allow_changes",
    "console_dir",
    "console_listen",
    "console_release",
    "console_sender",
    "drain_ms",
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
    "reload",
    "sender_listen",
    "sender_topics",
    "spark_master",
    "state_dir",
    "tls_certificate",
    "tls_clients",
    "tls_key",
    "tokens",
}

# What the chart of node tuning decides.
TUNER_DECIDED = {"journal", "metrics_listen", "mode", "node", "root"}

_LINE = re.compile(r"^(?P<indent> *)(?P<key>[A-Za-z_0-9]+):(?: (?P<value>.*))?$")


@dataclass(frozen=True, slots=True)
class Value:
    """A line of the table: the path of a value, its default as it is written, and its comment."""

    path: str
    default: str
    comment: str


@dataclass(frozen=True, slots=True)
class ChartPages:
    """What is rendered of one chart: the settings that its values may hold, and what its README begins with."""

    name: str
    kinds: Sequence[type[BaseSettings]]
    decided: set[str]
    about: Sequence[str]

    def settings_schema(self) -> dict[str, Any]:
        """What `settings` may hold: every setting of every kind but those that the chart decides."""
        fields = {name: field for kind in self.kinds for name, field in kind.model_fields.items()}
        return {
            "type": "object",
            "additionalProperties": False,
            "properties": {
                name: _of(field) for name, field in sorted(fields.items()) if name not in self.decided
            },
        }


CHART = ChartPages(
    "bettong",
    KINDS,
    DECIDED,
    (
        "Senders, a Spark cluster (master, workers, driver), a receiver and, if wanted, a console, for one",
        "application. How to use it, and why it is as it is: [docs/kubernetes.md](../../../docs/kubernetes.md).",
        "Rendered from values.yaml by `make docs`.",
    ),
)
TUNING = ChartPages(
    "bettong-node-tuning",
    (TunerSettings,),
    TUNER_DECIDED,
    (
        "A DaemonSet that tunes the kernel of opted-in nodes, and restores the old values. What each setting does, its",
        "risk, and how to restore by hand: [docs/node-tuning.md](../../../docs/node-tuning.md). Rendered from",
        "values.yaml by `make docs`.",
    ),
)


def chart_pages() -> dict[Path, str]:
    """Each page's path and text."""
    found = {}
    for chart in (CHART, TUNING):
        folder = CHARTS / chart.name
        values = (folder / "values.yaml").read_text().splitlines()
        schema = json.loads((folder / "values.schema.json").read_text())
        schema["properties"]["settings"] = chart.settings_schema()
        found[folder / "README.md"] = _readme(chart, list(described(values)))
        found[folder / "values.schema.json"] = json.dumps(schema, indent=1) + "\n"
    return found


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


def marks(field: FieldInfo) -> list[Any]:
    """The limits of a setting, also where it may be None."""
    found = list(field.metadata)
    for each in get_args(field.annotation) if _is_optional(field.annotation) else ():
        if get_origin(each) is Annotated:
            found += get_args(each)[1:]
    return _flat(found)


def _flat(found: Iterable[Any]) -> list[Any]:
    """With the limits that a Field holds in its place."""
    return [deeper for each in found for deeper in (each.metadata if isinstance(each, FieldInfo) else [each])]


def _is_optional(kind: Any) -> bool:
    return get_origin(kind) in {Union, UnionType} and NoneType in get_args(kind)


def _of(field: FieldInfo) -> dict[str, Any]:
    found: dict[str, Any] = {"description": field.description}
    kind = field.annotation
    if isinstance(kind, type) and issubclass(kind, Enum):
        return {**found, "enum": [each.value for each in kind]}
    found |= _type(kind) | _limits(marks(field))
    return found | (field.json_schema_extra if isinstance(field.json_schema_extra, dict) else {})


def _limits(found: Iterable[Any]) -> dict[str, Any]:
    """As the schema says them."""
    said: dict[str, Any] = {}
    for mark in found:
        if isinstance(mark, Ge):
            said["minimum"] = mark.ge
        if isinstance(mark, Le):
            said["maximum"] = mark.le
        if pattern := getattr(mark, "pattern", None):
            said["pattern"] = pattern
        if length := getattr(mark, "max_length", None):
            said["maxLength"] = length
    return said


def _type(kind: Any) -> dict[str, Any]:
    if get_origin(kind) is list:
        (item,) = get_args(kind)
        return {"type": "array", "items": {"type": "string"} | _limits(_flat(get_args(item)[1:]))}
    if get_origin(kind) is dict:
        return {"type": "object", "additionalProperties": {"type": ["string", "integer"]}}
    if get_origin(kind) is Annotated:
        kind = get_args(kind)[0]
    if _is_optional(kind):
        (given,) = (each for each in get_args(kind) if each is not NoneType)
        return {"type": [_type(given)["type"], "null"]}
    names: dict[Any, str] = {bool: "boolean", int: "integer", float: "number"}
    return {"type": names.get(kind, "string")}


def _readme(chart: ChartPages, values: list[Value]) -> str:
    lines = [
        f"# The chart `{chart.name}`",
        "",
        *chart.about,
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
