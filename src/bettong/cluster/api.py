"""Calls the API server of the kubeconfig, in one namespace. The only module that imports the client `kubernetes`.

Objects are JSON, as the server returns them. A refusal becomes a ClusterError, which names the missing permission.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import urllib3
from kubernetes import client, config, stream
from kubernetes.utils import parse_quantity

from bettong.closing import Closing
from bettong.cluster.objects import Object, component_of
from bettong.errors import ClusterError, ClusterForbiddenError, ClusterUnavailableError

CONNECT_S_MAX = 10.0
ANSWER_S_MAX = 30.0
# For a log that is followed: pods may log nothing for long; a dead connection is noticed after this time.
QUIET_S_MAX = 300.0
# The channel with the Status of a command that has ended: k8s.io/apimachinery/pkg/util/remotecommand.
_STATUS_CHANNEL = 3
_LIST_MAX = 500  # objects per page
_GROUPS = {
    "pods": "/api/v1",
    "events": "/api/v1",
    "configmaps": "/api/v1",
    "namespaces": "/api/v1",
    "deployments": "/apis/apps/v1",
    "statefulsets": "/apis/apps/v1",
    "horizontalpodautoscalers": "/apis/autoscaling/v2",
}
# https://github.com/kubernetes/kubernetes/blob/v1.37.0/staging/src/k8s.io/apiserver/pkg/endpoints/handlers/responsewriters/errors.go
_FORBIDDEN = re.compile(
    r'User "(?P<user>[^"]*)" cannot (?P<verb>\w+) resource "(?P<resource>[^"]*)" in API group "(?P<group>[^"]*)"'
)


@dataclass(frozen=True, slots=True)
class PodUsage:
    """Recent usage of all containers of a pod together."""

    component: str
    cores: float
    memory_bytes: float


class PodConnection(Protocol):
    """The part of the socket interface that callers use."""

    def recv(self, size: int, /) -> bytes:
        """Blocks until data arrives; empty at the end of the stream."""

    def sendall(self, data: bytes, /) -> None:
        """Blocks until all data is accepted."""

    def shutdown(self, how: int, /) -> None:
        """Shuts down one direction, or both."""

    def close(self) -> None:
        """Closes the connection."""


class Cluster(Closing):
    """A connection to a cluster; a context manager. Only `log_lines` may be called from several threads.

    `context`: the name of the kubeconfig's context in use; None in a pod.
    """

    def __init__(self, *, context: str | None = None, namespace: str | None = None) -> None:
        """Reads the kubeconfig, or a pod's service account. Raises ClusterError if there is neither."""
        self._client, self.context, default_namespace = _connect(context)
        self.namespace = namespace or default_namespace or "default"

    def close(self) -> None:
        """Closes the connection."""
        self._client.close()

    def list(self, resource: str, *, labels: str = "", fields: str = "") -> list[Object]:
        """All objects of a resource that match the label and field selectors."""
        found: list[Object] = []
        more = ""
        while True:
            query = {
                "labelSelector": labels,
                "fieldSelector": fields,
                "limit": str(_LIST_MAX),
                "continue": more,
            }
            page = self._json("GET", self._path(resource), query)
            found += page["items"]
            if not (more := page["metadata"].get("continue", "")):
                return found

    def get(self, resource: str, name: str) -> Object:
        """One object. Raises ClusterError if it does not exist."""
        return self._json("GET", self._path(resource, name))

    def patch(self, resource: str, name: str, change: Object, *, subresource: str = "") -> Object:
        """Applies a JSON merge patch (RFC 7396) to an object."""
        path = self._path(resource, name) + (f"/{subresource}" if subresource else "")
        return self._json("PATCH", path, body=change)

    def make_namespace(self, body: Object) -> bool:
        """Creates this namespace; False if it exists already."""
        try:
            self._json("POST", "/api/v1/namespaces", body=body)
        except _ExistsError:
            return False
        return True

    def read_namespace(self) -> Object:
        """This namespace as an object."""
        return self._json("GET", f"/api/v1/namespaces/{self.namespace}")

    def has_namespace(self) -> bool:
        """Whether this namespace exists, even if it is being deleted."""
        try:
            self.read_namespace()
        except _MissingError:
            return False
        return True

    def drop_namespace(self) -> None:
        """Starts to delete this namespace and everything in it; does not wait."""
        self._json("DELETE", f"/api/v1/namespaces/{self.namespace}")

    def read_node(self, name: str) -> Object:
        """A node as an object."""
        return self._json("GET", f"/api/v1/nodes/{name}")

    def version(self) -> str:
        """The version of the API server, such as v1.37.1."""
        return str(self._json("GET", "/version")["gitVersion"])

    def usages(self, labels: str) -> Sequence[PodUsage]:
        """The usage of pods: https://github.com/kubernetes/metrics. Raises ClusterError without a metrics server."""
        path = f"/apis/metrics.k8s.io/v1beta1/namespaces/{self.namespace}/pods"
        found = self._json("GET", path, {"labelSelector": labels})["items"]
        return [PodUsage(component_of(each), _usage(each, "cpu"), _usage(each, "memory")) for each in found]

    def log_lines(
        self, pod: str, container: str, *, since_s: int | None, follow: bool, previous: bool
    ) -> Iterator[str]:
        """Lines of a container's log, each preceded by its time. With `follow`, blocks until the container ends."""
        query = {
            "container": container,
            "timestamps": "true",
            "follow": str(follow).lower(),
            "previous": str(previous).lower(),
            "sinceSeconds": str(since_s) if since_s is not None else "",
        }
        answer = self._call("GET", self._path("pods", pod) + "/log", query, quiet_s=QUIET_S_MAX)
        left = b""
        try:
            for piece in answer.stream(64 * 1024):
                *lines, left = (left + piece).split(b"\n")
                yield from (line.decode(errors="replace") for line in lines)
        except urllib3.exceptions.ReadTimeoutError:
            pass  # no output for long: the follower reconnects
        except urllib3.exceptions.HTTPError as error:
            raise ClusterError(f"the log of {pod} broke off: {error}") from error
        finally:
            answer.release_conn()
        if left:
            yield left.decode(errors="replace")

    def run(self, pod: str, container: str, command: Sequence[str], *, seconds_max: float) -> str:
        """Runs a command in a container and returns its output. Raises ClusterError when it fails."""
        pods = client.CoreV1Api(self._client)
        try:
            call = stream.stream(
                pods.connect_get_namespaced_pod_exec,
                pod,
                self.namespace,
                container=container,
                command=list(command),
                stdout=True,
                stderr=True,
                stdin=False,
                tty=False,
                _preload_content=False,
            )
            with closing(call):
                call.run_forever(timeout=seconds_max)
                ending = json.loads(call.read_channel(_STATUS_CHANNEL) or "{}")
                output = call.read_all()
        except client.ApiException as error:
            raise ClusterError(
                f"no command can be run in {pod}:"
                f" {_explain(str(error.reason), self.namespace, upgrades='pods/exec')}"
            ) from error
        if ending.get("status") != "Success":
            why = ending.get("message") or f"no end within {seconds_max:g} s"
            raise ClusterError(
                f"{' '.join(command[:2])} in {pod}: {why}; it said: {output.strip() or 'nothing'}"
            )
        return str(output)

    def forward(self, pod: str, port: int) -> PodConnection:
        """A connection to a port of a pod, through the API server. Raises ClusterError when it is refused."""
        pods = client.CoreV1Api(self._client)
        try:
            found: PodConnection = stream.portforward(
                pods.connect_get_namespaced_pod_portforward, pod, self.namespace, ports=str(port)
            ).socket(port)
        except client.ApiException as error:
            raise ClusterError(
                f"no connection to port {port} of {pod}:"
                f" {_explain(str(error.reason), self.namespace, upgrades='pods/portforward')}"
            ) from error
        return found

    def _path(self, resource: str, name: str = "") -> str:
        return f"{_GROUPS[resource]}/namespaces/{self.namespace}/{resource}" + (f"/{name}" if name else "")

    def _json(
        self, method: str, path: str, query: Mapping[str, str] | None = None, body: Object | None = None
    ) -> dict[str, Any]:
        found = json.loads(self._call(method, path, query or {}, body).read())
        assert isinstance(found, dict)  # noqa: S101 - the API's contract
        return found

    def _call(
        self,
        method: str,
        path: str,
        query: Mapping[str, str],
        body: Object | None = None,
        quiet_s: float = ANSWER_S_MAX,
    ) -> Any:
        headers = {"Accept": "application/json, */*"}
        if body is not None:
            headers["Content-Type"] = (
                "application/json" if method == "POST" else "application/merge-patch+json"
            )
        words = self._client.param_serialize(
            method,
            path,
            query_params=[(key, value) for key, value in query.items() if value],
            header_params=headers,
            body=body,
            auth_settings=["BearerToken"],
        )
        try:
            answer = self._client.call_api(*words, _request_timeout=(CONNECT_S_MAX, quiet_s))
        except (urllib3.exceptions.HTTPError, client.ApiException) as error:
            host = self._client.configuration.host
            raise ClusterUnavailableError(
                f"no answer from the cluster at {host}: {_reason(error)}"
            ) from error
        if answer.status >= 300:
            raise self._refusal(answer.status, answer.read().decode(errors="replace"))
        return answer.response

    def _refusal(self, status: int, text: str) -> ClusterError:
        try:
            message = str(json.loads(text)["message"])
        except (ValueError, KeyError, TypeError):
            message = text or f"HTTP {status}"
        if status == 401:
            return ClusterError(
                "the cluster rejects your credentials (401): they may have expired; log in again or use another context"
            )
        if status == 404:
            return _MissingError(message)
        if status == 409:
            return _ExistsError(message)
        text = _explain(message, self.namespace)
        return ClusterForbiddenError(text) if status == 403 else ClusterError(text)


class _ExistsError(ClusterError):
    """An object of that name exists already."""


class _MissingError(ClusterError):
    """There is no such object, or no such API."""


def _usage(pod: Object, kind: str) -> float:
    return float(sum(parse_quantity(each["usage"][kind]) for each in pod["containers"]))


def _explain(message: str, namespace: str, *, upgrades: str = "") -> str:
    """Adds the missing permission to a refusal. `upgrades`: the resource of a call that upgrades its connection."""
    # When an upgrade is refused, the client quotes the server's answer with its quotes escaped.
    if found := _FORBIDDEN.search(message.replace("\\", "")):
        return _missing_permission(namespace, **found.groupdict())
    if "Handshake status 403" in message:
        # The server gives no details for an upgraded connection: pkg/registry/core/pod/rest/subresources.go.
        return _missing_permission(namespace, "yours", "create", upgrades, "")
    return message


def _missing_permission(namespace: str, user: str, verb: str, resource: str, group: str) -> str:
    return (
        f"not allowed in namespace {namespace}: a Role of {user} must allow apiGroups [{group!r}],"
        f" resources [{resource!r}], verbs [{verb!r}]; docs/kubernetes-roles.md lists what each command needs"
    )


def _reason(error: Exception) -> str:
    """The innermost cause of an urllib3 error."""
    cause = getattr(error, "reason", None)
    return _reason(cause) if isinstance(cause, Exception) else str(cause or error)


def _connect(context: str | None) -> tuple[client.ApiClient, str | None, str | None]:
    """A client, the name of its context, and the default namespace of that."""
    # Read here, because the package keeps the value from when it was first imported.
    files = os.environ.get("KUBECONFIG") or str(Path.home() / ".kube" / "config")
    there = any(Path(file).is_file() for file in files.split(os.pathsep))
    try:
        if there:
            contexts, current = config.list_kube_config_contexts(config_file=files)
            known = {each["name"]: each for each in contexts}
            if context is not None and context not in known:
                raise ClusterError(f"context {context}: {files} has {', '.join(known) or 'none'}")
            chosen = known[context] if context is not None else current
            found = config.new_client_from_config(config_file=files, context=context, persist_config=False)
            return found, chosen["name"], chosen["context"].get("namespace")
        settings = client.Configuration()
        config.load_incluster_config(client_configuration=settings)
        return client.ApiClient(settings), None, _own_namespace()
    except config.ConfigException as error:
        if there:
            raise ClusterError(f"{files} cannot be used: {error}") from error
        raise ClusterError(
            f"no kubeconfig: {files} is not there; set KUBECONFIG, or let your cluster's tool write one"
        ) from error


def _own_namespace() -> str | None:
    """The namespace of the pod in which this process runs; None outside a pod."""
    file = Path("/var/run/secrets/kubernetes.io/serviceaccount/namespace")
    return file.read_text().strip() if file.is_file() else None
