"""The values that the chart is rendered with: ways to deploy, crossed with the classes of pods."""

from collections.abc import Mapping
from typing import Any

from tests.kubernetes.chart import REAL

# What is added to the least deployment.
WAYS: Mapping[str, Mapping[str, Any]] = {
    "least": {},
    "bundled": {
        "application": {"path": "", "source": "x = 1"},
        "kafka": {"bootstrapServers": "", "bundled": {"enabled": True}},
        "redis": {"url": "", "bundled": {"enabled": True}},
    },
    "secrets": {
        "redis": {"url": "", "urlSecret": {"name": "redis", "port": 6390}},
        "connectionsSecret": "connections",
        "kafka": {
            "tls": {"enabled": True, "secretName": "kafka-ca", "clients": True},
            "sasl": {"user": "ann", "secretName": "kafka-user"},
        },
        "tls": {"secretName": "certificate", "clients": True},
        "tokens": {"secretName": "tokens"},
        "test": {"clientSecret": "tester"},
        "console": {"enabled": True, "allowChanges": True, "clientSecret": "console"},
        "image": {"pullSecrets": ["pull"], "processor": "my/totals@sha256:" + "0" * 64},
    },
    "many": {
        "sender": {"initialReplicas": 3},
        "worker": {"initialReplicas": 4},
        "tls": {"certManager": {"issuerRef": {"name": "ours"}, "dnsNames": ["feed.example"]}},
    },
    "fixed": {"sender": {"replicas": 2}, "worker": {"replicas": 3}},
    "autoscaled": {
        "sender": {"autoscaling": {"enabled": True}},
        "worker": {"autoscaling": {"enabled": True}},
    },
    "repartitioned": {
        "sender": {"replicas": 2},
        "topicSender": {"enabled": True},
        "driver": {"env": [{"name": "A", "value": "b"}], "envFrom": [{"secretRef": {"name": "s3"}}]},
        "repartition": {"arguments": ["--partitions", 32, "--give-up", "orders/*"]},
    },
    "full": {
        "topicSender": {"enabled": True, "topics": "orders"},
        "receiver": {"files": {"enabled": True, "storageClassName": "fast"}, "labels": {"team": "a"}},
        "console": {"enabled": True},
        "priorityClass": {"create": True},
        "metrics": {"enabled": True},
        "serviceMonitor": {"enabled": True, "labels": {"release": "prometheus"}},
        "alerts": {"enabled": True, "labels": {"release": "prometheus"}},
        "dashboards": {"enabled": True, "annotations": {"grafana_folder": "Bettong"}},
        "networkPolicies": {
            "clients": [{"namespaceSelector": {"matchLabels": {"team": "a"}}}],
            "scrapers": [{"namespaceSelector": {"matchLabels": {"team": "watchers"}}}],
            "egress": [{"ports": [{"port": 5432, "protocol": "TCP"}]}],
        },
        "settings": {"partitions": 32, "schedule": "micro-batch", "compiled": False, "log_format": "json"},
        "sender": {"env": [{"name": "A", "value": "b"}], "nodeSelector": {"disk": "ssd"}},
        "worker": {
            "envFrom": [{"secretRef": {"name": "s3"}}],
            "volumes": [{"name": "scratch", "emptyDir": {}}],
            "volumeMounts": [{"name": "scratch", "mountPath": "/scratch"}],
            "affinity": {"nodeAffinity": {}},
            "slots": 1,
            "keda": {"enabled": True, "maxReplicas": 50},
        },
        "driver": {"checkpoint": {"url": "s3a://bucket/checkpoint"}},
        "spark": {"conf": {"spark.log.level": "INFO"}},
        "test": {"source": "orders", "message": '{"account": "{id}"}', "sink": "rejected"},
        "extraObjects": [
            {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "{{ .Release.Name }}-extra"}},
            "apiVersion: v1\nkind: Secret\nmetadata: {name: extra}",
        ],
    },
    "plain": {
        "networkPolicies": {"enabled": False},
        "podDisruptionBudgets": {"enabled": False},
        "serviceAccount": {"create": False},
        "master": {"persistence": {"enabled": False}},
        "driver": {"checkpoint": {"persistence": {"enabled": False}}},
    },
}
CLASSES: Mapping[str, Mapping[str, Any]] = {
    "burstable": {"qos": {"mode": "burstable"}},
    "burst": {"worker": {"resources": {"burst": {"cpu": 4, "memory": "6Gi"}}}},
    "guaranteed": {"qos": {"mode": "guaranteed"}},
    "pinned": {
        "qos": {"mode": "guaranteed", "smtMultiple": 2, "pin": {"enabled": True}},
        **{
            name: {"resources": {"cpu": 2}}
            for name in ("sender", "topicSender", "receiver", "console", "master", "driver")
        },
        "worker": {"resources": {"cpu": "4000m"}},
        "kafka": {"bundled": {"resources": {"cpu": 2}}},
        "redis": {"bundled": {"resources": {"cpu": 2}}},
    },
}


def merged(*layers: Mapping[str, Any]) -> dict[str, Any]:
    """Layers of values, later ones over earlier ones, as helm does it."""
    found: dict[str, Any] = {}
    for layer in layers:
        for key, value in layer.items():
            old = found.get(key)
            if isinstance(old, Mapping) and isinstance(value, Mapping):
                found[key] = merged(old, value)
            else:
                found[key] = value
    return found


def leaves(values: Mapping[str, Any], above: str = "") -> list[str]:
    """The path of each value, with dots; without labels that others look for."""
    found = []
    for key, value in values.items():
        deeper = isinstance(value, Mapping) and value
        found += leaves(value, f"{above}{key}.") if deeper else [f"{above}{key}"]
    return [path for path in found if not path.startswith(("qos.pin.nodeSelector.", "dashboards.labels."))]


MATRIX = {
    f"{way}-{kind}": merged(REAL, values, resources)
    for way, values in WAYS.items()
    for kind, resources in CLASSES.items()
}
