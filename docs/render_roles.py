"""The page of Roles that `bettong k8s` needs: one a command, from `bettong.cluster.permissions`."""

from bettong.cluster.permissions import NEEDS, Rule, role_name


def roles_page() -> str:
    """The text of docs/kubernetes-roles.md."""
    lines = [
        "# What `bettong k8s` may be allowed",
        "",
        "For anyone who gives people access to a cluster.",
        "",
        "Each command needs a Role in the namespace of the release, with these rules and no others; nothing of a",
        "cluster as a whole. A test gives a service account each Role on a real API server, and takes away a verb at a",
        "time. The error of a command names what is missing. Rendered from `src/bettong/cluster/permissions.py` by",
        "`make docs`.",
        "",
        "`bettong k8s try` makes a namespace and installs the chart in it: it needs what `helm install` needs",
        "there (the ClusterRole `admin` in the namespace), and `create` and `delete` of `namespaces`.",
        "`bettong lab run` on a cluster needs the same, and `get` of `namespaces`; with `get` of `nodes` it says what",
        "they are.",
        "",
        "The [console](console.md#what-it-may-change) of the chart scales workers where `console.allowChanges` is on.",
        "Then the chart makes a Role for it, `RELEASE-bettong-console`: the rules of `bettong k8s scale` but for pods",
        "and events, held to the names of the release where Kubernetes can.",
    ]
    for command, rules in NEEDS.items():
        lines += [
            "",
            f"## `bettong k8s {command}`",
            "",
            "| rule | why |",
            "| --- | --- |",
            *(f"| {', '.join(rule.verbs)} {', '.join(rule.resources)} | {rule.why} |" for rule in rules),
            "",
            "```yaml",
            "apiVersion: rbac.authorization.k8s.io/v1",
            "kind: Role",
            f"metadata: {{name: {role_name(command)}}}",
            "rules:",
            *(f"  - {_rule(rule)}" for rule in rules),
            "```",
        ]
    return "\n".join(lines) + "\n"


def _rule(rule: Rule) -> str:
    listed = f"resources: [{', '.join(rule.resources)}], verbs: [{', '.join(rule.verbs)}]"
    return f'{{apiGroups: ["{rule.group}"], {listed}}}'
