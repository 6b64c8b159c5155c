"""The minimal permissions of each command of `bettong k8s`; docs/kubernetes-roles.md is rendered from them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from bettong.cluster.objects import Object


@dataclass(frozen=True, slots=True)
class Rule:
    """A rule of a Role, in the namespace of the release: `verbs` of `resources` of the API group."""

    group: str
    resources: tuple[str, ...]
    verbs: tuple[str, ...]
    why: str

    def as_object(self) -> Object:
        """The rule as in a Role's manifest."""
        return {"apiGroups": [self.group], "resources": list(self.resources), "verbs": list(self.verbs)}


_FIND = Rule("apps", ("statefulsets",), ("list",), "which releases there are, and their counts")
_PODS = Rule("", ("pods",), ("list",), "pods, and why one is not ready")
_EVENTS = Rule("", ("events",), ("list",), "why a pod was refused or has no node")
_SETTINGS = Rule(
    "", ("configmaps",), ("get",), "the number of partitions; may be held to RELEASE-bettong-settings"
)
_DEPLOYMENTS = Rule("apps", ("deployments",), ("list",), "senders and receiver")
# Clusters before 1.35 ask for `get`, newer ones for `create`: kubernetes.io/docs/reference/access-authn-authz/rbac.
_EXEC = Rule(
    "",
    ("pods/exec",),
    ("create", "get"),
    "asks the driver in its pod (`get`: clusters before 1.35); whoever may do this may do all that the pods may",
)
# Enough to scale, and no more: the chart's Role for a console that may change something.
SCALING: Sequence[Rule] = (
    _FIND,
    _SETTINGS,
    Rule("autoscaling", ("horizontalpodautoscalers",), ("list",), "whether an autoscaler would undo it"),
    Rule("apps", ("statefulsets/scale",), ("patch",), "the count; may be held to RELEASE-bettong-worker"),
)

NEEDS: Mapping[str, Sequence[Rule]] = {
    "status": (_FIND, _DEPLOYMENTS, _PODS, _EVENTS, _SETTINGS),
    "status --lag": (_FIND, _DEPLOYMENTS, _PODS, _EVENTS, _SETTINGS, _EXEC),
    "scale": (*SCALING, _PODS, _EVENTS),
    "rollout": (
        _FIND,
        _DEPLOYMENTS,
        _PODS,
        _EVENTS,
        Rule(
            "apps",
            ("deployments", "statefulsets"),
            ("patch",),
            "the time of the restart, in the pods' template",
        ),
    ),
    "rollout --status": (_FIND, _DEPLOYMENTS, _PODS, _EVENTS),
    "logs": (_FIND, _PODS, Rule("", ("pods/log",), ("get",), "the logs")),
}


def role_name(command: str) -> str:
    """The name of a command's Role."""
    return f"bettong-{command.replace(' --', '-')}"


def role(command: str, namespace: str) -> Object:
    """The Role that a command needs in a namespace."""
    return {
        "apiVersion": "rbac.authorization.k8s.io/v1",
        "kind": "Role",
        "metadata": {"name": role_name(command), "namespace": namespace},
        "rules": [each.as_object() for each in NEEDS[command]],
    }
