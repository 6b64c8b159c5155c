"""A stand-in for an API server of Kubernetes: the objects of a release that a scale needs, and a Role that is kept.

Over HTTP, for `bettong.cluster`; what a real one does is proved in tests/kubernetes.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, Protocol

import yaml

NAMESPACE = "space"
RELEASE = "trial"
WORKERS = f"{RELEASE}-bettong-worker"
SETTINGS = f"{RELEASE}-bettong-settings"


class AnsweringApi(Protocol):
    """What `served_api` serves. `broken`: the verb whose calls break off."""

    broken: str | None

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any] | str]:
        """Status, and an object or a text."""


@dataclass
class ApiServer:
    """A release of 2 workers with 4 slots each, for 16 partitions."""

    replicas: int = 2
    scalers: list[dict[str, Any]] = field(default_factory=list)
    # None: all is allowed.
    rules: list[dict[str, Any]] | None = None
    # The verb whose calls break off.
    broken: str | None = None
    calls: list[tuple[str, str, str]] = field(default_factory=list)

    def answer(self, method: str, path: str, body: bytes) -> tuple[int, dict[str, Any]]:
        """Status and object."""
        parts = path.partition("?")[0].split("/")
        group = parts[2] if parts[1] == "apis" else ""
        kind, name, *sub = [*parts[parts.index(NAMESPACE) + 1 :], ""][:3]
        resource = f"{kind}/{sub[0]}" if sub and sub[0] else kind
        verb = {"GET": "get" if name else "list", "PATCH": "patch"}[method]
        self.calls.append((verb, resource, name))
        if self.rules is not None and not any(
            _allows(each, group, verb, resource, name) for each in self.rules
        ):
            text = f'{resource} is forbidden: User "u" cannot {verb} resource "{resource}" in API group "{group}"'
            return 403, {"kind": "Status", "message": text}
        if resource == "statefulsets/scale":
            self.replicas = json.loads(body)["spec"]["replicas"]
            return 200, {"spec": {"replicas": self.replicas}}
        if resource == "configmaps":
            return 200, {"data": {"BETTONG_PARTITIONS": "16"}}
        items = {"statefulsets": [self._workers()], "horizontalpodautoscalers": self.scalers}[resource]
        return 200, {"metadata": {}, "items": items}

    def _workers(self) -> dict[str, Any]:
        labels = {
            "app.kubernetes.io/instance": RELEASE,
            "app.kubernetes.io/component": "worker",
            "helm.sh/chart": "bettong-0.1.0",
        }
        container = {"args": ["--cores", "4"], "envFrom": [{"configMapRef": {"name": SETTINGS}}]}
        return {
            "metadata": {"name": WORKERS, "labels": labels},
            "spec": {"replicas": self.replicas, "template": {"spec": {"containers": [container]}}},
            "status": {"readyReplicas": self.replicas},
        }


def _allows(rule: dict[str, Any], group: str, verb: str, resource: str, name: str) -> bool:
    return (
        group in rule["apiGroups"]
        and resource in rule["resources"]
        and verb in rule["verbs"]
        and name in rule.get("resourceNames", [name])
    )


@contextmanager
def served_api(api: AnsweringApi, kubeconfig: Path) -> Iterator[None]:
    """Serves it at a port of loopback that `kubeconfig` names, while the block runs."""

    class Handler(BaseHTTPRequestHandler):
        def _answer(self) -> None:
            if self.command == api.broken:
                self.connection.close()
                return
            body = self.rfile.read(int(self.headers.get("content-length", 0)))
            status, found = api.answer(self.command, self.path, body)
            text = (found if isinstance(found, str) else json.dumps(found)).encode()
            self.send_response(status)
            self.send_header("content-length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PATCH = do_POST = do_DELETE = _answer  # noqa: N815 - as the base class calls them

        def log_message(self, format: str, *_: object) -> None:  # noqa: A002 - as the base class has it
            """Says nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, name="api", kwargs={"poll_interval": 0.02})
    thread.start()
    try:
        kubeconfig.write_text(yaml.safe_dump(_config(f"http://127.0.0.1:{server.server_port}")))
        yield
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def _config(url: str) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "here", "cluster": {"server": url}}],
        "users": [{"name": "u", "user": {"token": "t"}}],
        "contexts": [{"name": "here", "context": {"cluster": "here", "user": "u", "namespace": NAMESPACE}}],
    }
