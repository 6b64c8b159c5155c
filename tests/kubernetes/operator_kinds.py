"""The chart's objects of operators, against the schemas that their CustomResourceDefinitions give to API servers.

`operator_kinds/` comes out of the operators' Go modules, as SOURCES says; `python -m tests.kubernetes.operator_kinds`
takes it out anew (Go and a network). Descriptions and rules in CEL are left out. An API server drops a field that it
does not know, so the schemas are closed here: such a field is an error.
"""

import json
import os
import subprocess
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import jsonschema
import yaml

from tests.kubernetes.chart import Object

FOLDER = Path(__file__).parent / "operator_kinds"
_DOWNLOAD_S_MAX = 300.0
# What a schema of OpenAPI has and a JSON Schema does not, or what nobody needs here.
_DROPPED = {"default", "description", "example", "format", "nullable", "title"}

Schema = dict[str, Any]


@dataclass(frozen=True)
class Source:
    """Where the definition of a kind comes from: a path in a Go module, Apache License 2.0 all of them."""

    kind: str
    api_version: str
    module: str
    path: str


SOURCES = (
    Source(
        "Certificate",
        "cert-manager.io/v1",
        "github.com/cert-manager/cert-manager@v1.21.2",
        "deploy/crds/cert-manager.io_certificates.yaml",
    ),
    Source(
        "ScaledObject",
        "keda.sh/v1alpha1",
        "github.com/kedacore/keda/v2@v2.21.0",
        "config/crd/bases/keda.sh_scaledobjects.yaml",
    ),
    Source(
        "PrometheusRule",
        "monitoring.coreos.com/v1",
        "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml",
    ),
    Source(
        "ServiceMonitor",
        "monitoring.coreos.com/v1",
        "github.com/prometheus-operator/prometheus-operator@v0.85.0",
        "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml",
    ),
)
KINDS = {each.kind: each for each in SOURCES}
# What KEDA's ScaledObject calls triggers, with the metadata that each takes.
_SCALERS = "schema/generated/scalers-schema.json"
_TRIGGER = "metrics-api"


def validate(each: Object) -> None:
    """Raises jsonschema.ValidationError at the first field that is unknown, missing or of another type."""
    source = KINDS[each["kind"]]
    if each["apiVersion"] != source.api_version:
        raise jsonschema.ValidationError(f"{each['apiVersion']}: {source.kind} is of {source.api_version}")
    jsonschema.validate(each, json.loads(_file(source).read_text()))


def _file(source: Source) -> Path:
    return FOLDER / f"{source.kind}.json"


def closed(schema: Mapping[str, Any]) -> Schema:
    """The JSON Schema of a structural schema (of custom resource definitions) that takes no unknown field."""
    found: Schema = {
        key: value for key, value in schema.items() if key not in _DROPPED and not key.startswith("x-")
    }
    if "properties" in found:
        found["properties"] = {name: closed(each) for name, each in found["properties"].items()}
        if not schema.get("x-kubernetes-preserve-unknown-fields"):
            found.setdefault("additionalProperties", False)
    for key in ("items", "additionalProperties"):
        if isinstance(found.get(key), Mapping):
            found[key] = closed(found[key])
    if "(?i)" in found.get("pattern", ""):  # Go takes it anywhere, Python in front
        found["pattern"] = f"(?i){found['pattern'].replace('(?i)', '')}"
    if schema.get("nullable") and "type" in found:
        found["type"] = [found["type"], "null"]
    return found


def with_triggers(scaled: Schema, scalers: Mapping[str, Any]) -> Schema:
    """The schema of a ScaledObject, its triggers those of KEDA, and the metadata of our kind what KEDA reads."""
    by_type = {each["type"]: each["parameters"] for each in scalers["scalers"]}
    taken = [each for each in by_type[_TRIGGER] if each.get("metadataVariableReadable")]
    metadata = {
        "additionalProperties": False,
        "properties": {
            each["name"]: {"enum": each["allowedValue"]} if "allowedValue" in each else {} for each in taken
        },
        "required": [each["name"] for each in taken if not each.get("optional") and "default" not in each],
    }
    trigger = scaled["properties"]["spec"]["properties"]["triggers"]["items"]
    trigger["properties"]["type"]["enum"] = sorted(by_type)
    trigger["if"] = {"properties": {"type": {"const": _TRIGGER}}}
    trigger["then"] = {"properties": {"metadata": metadata}}
    return scaled


def main() -> None:
    """Takes the schemas out of the modules anew. Raises CalledProcessError with Go's own words before it."""
    for source in SOURCES:
        folder = _downloaded(source.module)
        definition = yaml.safe_load((folder / source.path).read_text())
        name = source.api_version.rpartition("/")[2]
        (version,) = (each for each in definition["spec"]["versions"] if each["name"] == name)
        schema = closed(version["schema"]["openAPIV3Schema"])
        if source.kind == "ScaledObject":
            schema = with_triggers(schema, json.loads((folder / _SCALERS).read_text()))
        schema = {"$comment": f"{source.module} {source.path}, Apache-2.0", **schema}
        FOLDER.mkdir(exist_ok=True)
        _file(source).write_text(json.dumps(schema, separators=(",", ":")) + "\n")


def _downloaded(module: str) -> Path:
    reported = subprocess.run(
        ["go", "mod", "download", "-json", module],
        cwd=Path(__file__).parent / "tools",
        env={**os.environ, "GOTOOLCHAIN": "local"},
        stdout=subprocess.PIPE,
        check=True,
        timeout=_DOWNLOAD_S_MAX,
    )
    return Path(json.loads(reported.stdout)["Dir"])


if __name__ == "__main__":
    main()
