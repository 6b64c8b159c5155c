"""The Kubernetes node that the tuner runs on: its annotation, and its startup taint. Patches no other node."""

from typing import Any

from kubernetes import client, config
from kubernetes.client.exceptions import ApiException
from kubernetes.config.config_exception import ConfigException
from urllib3.exceptions import HTTPError

from bettong_node_tuner.errors import NodeError, SettingsError
from bettong_node_tuner.report import ANNOTATION

TAINT = "bettong/untuned"
_CALL_S_MAX = 10.0


class Node:
    """A node by its name. Calls wait 10 s at most; failed ones raise NodeError and may be retried."""

    def __init__(self, api: client.CoreV1Api, name: str) -> None:
        self._api = api
        self._name = name

    def annotate(self, text: str) -> None:
        """Sets the report; other annotations stay."""
        self._patch({"metadata": {"annotations": {ANNOTATION: text}}})

    def remove_taint(self) -> bool:
        """Removes the startup taint; returns whether there was one. Other taints stay, also concurrently added ones."""
        try:
            node = self._api.read_node(self._name, _request_timeout=_CALL_S_MAX)
        except (ApiException, HTTPError) as error:
            raise _node_error(self._name, error) from error
        found = self._api.api_client.sanitize_for_serialization(node)
        taints = found["spec"].get("taints", [])
        left = [taint for taint in taints if taint["key"] != TAINT]
        if len(left) == len(taints):
            return False
        # The version makes the server refuse the list when the node was changed since: 409, retried.
        self._patch(
            {"metadata": {"resourceVersion": found["metadata"]["resourceVersion"]}, "spec": {"taints": left}}
        )
        return True

    def _patch(self, body: dict[str, Any]) -> None:
        try:
            self._api.patch_node(self._name, body, _request_timeout=_CALL_S_MAX)
        except (ApiException, HTTPError) as error:
            raise _node_error(self._name, error) from error


def _node_error(name: str, error: Exception) -> NodeError:
    reason = f"{error.status} {error.reason}" if isinstance(error, ApiException) else str(error)
    return NodeError(f"node {name}: the API server says {reason}")


def of_this_pod(name: str) -> Node:
    """The node, by the pod's service account. Raises SettingsError outside of a pod."""
    try:
        config.load_incluster_config()
    except ConfigException as error:
        raise SettingsError(
            f"a node is given ({name}), but this is not a pod with a service account: {error}"
        ) from error
    return Node(client.CoreV1Api(), name)
