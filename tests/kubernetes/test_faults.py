"""Values that are refused, before anything is installed, and what the user is told."""

from collections.abc import Mapping
from typing import Any

import pytest

from tests.kubernetes.chart import REAL, CallError, Chart
from tests.kubernetes.value_sets import merged

WATCHED = {"metrics": {"enabled": True}}
GUARANTEED = {"qos": {"mode": "guaranteed"}}
BUNDLED: dict[str, Any] = {"kafka": {"bootstrapServers": "", "bundled": {"enabled": True}}}
FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"workers": 3}, "additional properties 'workers' not allowed"),
    ({"worker": {"replica": 3}}, "at '/worker': additional properties 'replica' not allowed"),
    ({"worker": {"replicas": "three"}}, "at '/worker/replicas': got string, want"),
    ({"settings": {"partitons": 3}}, "at '/settings': additional properties 'partitons' not allowed"),
    ({"settings": {"partitions": 5000}}, "at '/settings/partitions': maximum: got 5,000, want 4,096"),
    ({"settings": {"reload": "/srv/code"}}, "at '/settings': additional properties 'reload' not allowed"),
    ({"settings": {"kafka": "elsewhere:1"}}, "at '/settings': additional properties 'kafka' not allowed"),
    ({"settings": {"gap_alarm_s": "banana"}}, "at '/settings/gap_alarm_s': got string, want number"),
    ({"settings": {"gap_alarm_s": 0.5}}, "at '/settings/gap_alarm_s': minimum: got 0.5, want 1"),
    ({"sender": {"resources": {"memory": "2G"}}}, "at '/sender/resources/memory': '2G' does not match"),
    ({"redis": {"url": "redis://user:password@host/0"}}, "at '/redis/url'"),
    ({"application": {"source": "x = 1"}}, "application: give exactly one of source"),
    ({"kafka": {"bootstrapServers": ""}}, "kafka: give bootstrapServers of a Kafka that is there"),
    ({"kafka": {"bundled": {"enabled": True}}}, "exactly one of them"),
    ({"redis": {"urlSecret": {"name": "other"}}}, "redis: give url or urlSecret.name"),
    ({"qos": {"pin": {"enabled": True}}}, "qos.pin.enabled: only pods of qos.mode guaranteed"),
    (
        {**GUARANTEED, "sender": {"resources": {"cpu": "1500m"}}},
        "sender.resources.cpu: 1500m is no whole number; qos.mode guaranteed gives whole CPUs only",
    ),
    ({**GUARANTEED, "driver": {"resources": {"cpu": 0.5}}}, "driver.resources.cpu: 0.5 is no whole number"),
    (
        {"qos": {"mode": "guaranteed", "smtMultiple": 2}},
        "resources.cpu: 1 is no multiple of qos.smtMultiple (2)",
    ),
    (
        {"worker": {"initialReplicas": 0}},
        "worker: 0 workers of 2 slots are 0 slots; the schedule needs at least 1",
    ),
    ({"worker": {"replicas": 0}}, "0 slots; the schedule needs at least 1"),
    ({**GUARANTEED, "worker": {"slots": 3}}, "worker.slots: 3 slots cannot share 2 CPUs"),
    (
        {"worker": {"replicas": 2, "autoscaling": {"enabled": True}}},
        "worker.replicas and worker.autoscaling.enabled exclude each other",
    ),
    ({"sender": {"autoscaling": {"enabled": True, "minReplicas": 9}}}, "maxReplicas is below minReplicas"),
    (
        {"settings": {"partitions": 4}, "worker": {"autoscaling": {"enabled": True}}},
        "worker.autoscaling.maxReplicas: 8 workers for 4 partitions",
    ),
    (
        {"sender": {"drainSeconds": 30}},
        "sender.terminationGracePeriodSeconds: 45 is too short, a stop takes up to 55 s",
    ),
    ({"worker": {"resources": {"memory": "2Gi"}}}, "worker.resources.memory: 2Gi is too little"),
    (
        {"tokens": {"secretName": "a"}},
        "tokens.secretName: without tls.secretName tokens would come in plain text",
    ),
    ({"tls": {"clients": True}}, "tls.clients: clients show certificates by TLS alone; give tls.secretName"),
    (
        {"serviceMonitor": {"enabled": True}},
        "serviceMonitor.enabled: there is nothing to read without metrics",
    ),
    (
        {**WATCHED, "alerts": {"enabled": True}},
        "alerts.enabled: their rules select by labels that the Service",
    ),
    (
        {"alerts": {"thresholds": {"stalledSeconds": "1m"}}},
        "at '/alerts/thresholds/stalledSeconds': got string, want",
    ),
    (
        {"alerts": {"thresholds": {"stalled": 60}}},
        "at '/alerts/thresholds': additional properties 'stalled' not",
    ),
    (
        {"alerts": {"thresholds": {"gapSeconds": None}}},
        "at '/alerts/thresholds': missing property 'gapSeconds'",
    ),
    (
        {"alerts": {"thresholds": {"gapSeconds": 0}}},
        "at '/alerts/thresholds/gapSeconds': exclusiveMinimum: got 0",
    ),
    (
        {"alerts": {"thresholds": {"downSeconds": 1.5}}},
        "at '/alerts/thresholds/downSeconds': got number, want integer",
    ),
    (
        {"alerts": {"thresholds": {"latencyShare": 99}}},
        "at '/alerts/thresholds/latencyShare': maximum: got 99, want 1",
    ),
    (
        {"alerts": {"thresholds": {"latencySeconds": 0.3}}},
        "at '/alerts/thresholds/latencySeconds': value must be one of",
    ),
    ({"alerts": {"without": ["BettongLate"]}}, "at '/alerts/without/0': value must be one of"),
    (
        {"dashboards": {"enabled": True}},
        "dashboards.enabled: there is nothing to show without metrics.enabled",
    ),
    ({"worker": {"keda": {"enabled": True}}}, "worker.keda.enabled: KEDA asks the driver for its lag; set"),
    (
        {**WATCHED, "worker": {"replicas": 2, "keda": {"enabled": True}}},
        "worker.replicas and worker.keda.enabled exclude each other",
    ),
    (
        {**WATCHED, "worker": {"autoscaling": {"enabled": True}, "keda": {"enabled": True}}},
        "worker.keda.enabled and worker.autoscaling.enabled exclude each other",
    ),
    (
        {**WATCHED, "settings": {"partitions": 4}, "worker": {"keda": {"enabled": True, "minReplicas": 5}}},
        "worker.keda.minReplicas: 5 workers, but 4 are the most",
    ),
    ({"kafka": {"sasl": {"user": "a"}}}, "kafka.sasl: give both of user and secretName"),
    ({"kafka": {"tls": {"secretName": "a"}}}, "kafka.tls: secretName and clients need kafka.tls.enabled"),
    ({"kafka": {"tls": {"enabled": True, "clients": True}}}, "kafka.tls.clients: give secretName"),
    (
        {"kafka": {"bootstrapServers": "", "bundled": {"enabled": True}, "tls": {"enabled": True}}},
        "kafka.bundled: it speaks plain text and knows no users",
    ),
    ({"redis": {"tls": {"secretName": "a"}}}, "redis.tls.secretName: the URL of a Redis that speaks TLS"),
    ({"redis": {"auth": {"user": "a"}}}, "redis.auth.user: give secretName"),
    (
        {"redis": {"url": "", "urlSecret": {"name": "a"}, "auth": {"secretName": "b"}}},
        "redis.auth: it goes with redis.url",
    ),
    ({"tls": {"secret": "a"}}, "at '/tls': additional properties 'secret' not allowed"),
    ({"test": {"source": "orders"}}, "test: give all of source, message and sink, or none"),
    (
        {"worker": {"resources": {"burst": {"cpu": 1}}}},
        "worker.resources.burst.cpu: 1 is below resources.cpu (2)",
    ),
    (
        {"worker": {"resources": {"burst": {"memory": "3Gi"}}}},
        "worker.resources.burst.memory: 3Gi is below resources.memory (4Gi)",
    ),
    (
        {
            **BUNDLED,
            "kafka": {
                **BUNDLED["kafka"],
                "bundled": {"enabled": True, "resources": {"burst": {"cpu": "100m"}}},
            },
        },
        "kafka.bundled.resources.burst.cpu: 100m is below resources.cpu (1)",
    ),
    ({"ephemeralStorage": {"request": "8Gi"}}, "ephemeralStorage.request: 8Gi is above the limit (4Gi)"),
    ({"sender": {"resources": {"cpu": "0"}}}, "at '/sender/resources/cpu': '0' does not match"),
    ({"sender": {"resources": {"cpu": "0.00"}}}, "at '/sender/resources/cpu': '0.00' does not match"),
    ({"sender": {"resources": {"cpu": 0}}}, "at '/sender/resources/cpu': minimum"),
    (
        {**BUNDLED, "settings": {"replication": 3}},
        "settings.replication: 3 copies, but kafka.bundled is a single broker",
    ),
    ({"kafka": {"bootstrapServers": "a:9092,b:99999"}}, "kafka.bootstrapServers: there is no port 99999"),
    ({"redis": {"url": "redis://redis:0/1"}}, "redis.url: there is no port 0"),
    (
        {**WATCHED, "serviceMonitor": {"enabled": True, "scrapeTimeout": "5m"}},
        "serviceMonitor.scrapeTimeout: 5m is above the interval (15s)",
    ),
    ({"fullnameOverride": "Foo_Bar"}, "at '/fullnameOverride': 'Foo_Bar' does not match"),
    ({"nameOverride": "Foo"}, "at '/nameOverride'"),
    ({"image": {"repository": ""}}, "at '/image/repository'"),
    ({"receiver": {"files": {"size": "lots"}}}, "at '/receiver/files/size': 'lots' does not match"),
    (
        {"sender": {"labels": {"app.kubernetes.io/instance": "a"}}},
        "invalid propertyName 'app.kubernetes.io/instance'",
    ),
    ({"worker": {"annotations": {"checksum/spark": "a"}}}, "invalid propertyName 'checksum/spark'"),
    ({"worker": {"env": [{"value": "a"}]}}, "at '/worker/env/0': missing property 'name'"),
    (
        {"qos": {"pin": {"nodeSelector": {"bettong/dedicated": None}}}},
        "at '/qos/pin/nodeSelector': minProperties",
    ),
    (
        {"settings": {"partitions": 4}, "worker": {"replicas": 40}},
        "worker.replicas: 40 workers for 4 partitions",
    ),
    (
        {"settings": {"partitions": 4}, "worker": {"initialReplicas": 5}},
        "worker.initialReplicas: 5 workers for 4 partitions",
    ),
    (
        {"spark": {"conf": {"spark.hadoop.fs.s3a.secret.key": "a"}}},
        "spark.conf: spark.hadoop.fs.s3a.secret.key would lie in a ConfigMap",
    ),
    ({"spark": {"conf": {"spark.ssl.keyPassword": "a"}}}, "spark.ssl.keyPassword would lie in a ConfigMap"),
    ({"spark": {"conf": {"spark.a": "https://u:p@b"}}}, "spark.conf: spark.a: a URL with a password"),
    ({"extraObjects": ["a"]}, "extraObjects[0]: an object of Kubernetes has an apiVersion and a kind"),
    ({"extraObjects": [{"kind": "ConfigMap"}]}, "extraObjects[0]: an object of Kubernetes has an apiVersion"),
    ({"settings": {"snapshots": "s3://key:word@bucket/a"}}, "settings.snapshots: a URL with a password"),
    ({"driver": {"checkpoint": {"url": "s3a://key:word@b"}}}, "driver.checkpoint.url: a URL with a password"),
]


@pytest.mark.parametrize(
    ("values", "message"), FAULTS, ids=lambda each: each if isinstance(each, str) else ""
)
def test_what_is_wrong_is_reported(chart: Chart, values: Mapping[str, Any], message: str) -> None:
    with pytest.raises(CallError) as raised:
        chart.render(merged(REAL, values))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    "values",
    [
        {"sender": {"resources": {"cpu": "0.05"}}, "receiver": {"resources": {"cpu": "1.50"}}},
        {"driver": {"checkpoint": {"persistence": {"enabled": None}}}},  # as helm takes a default away
        {"extraObjects": ["{{ if false }}never{{ end }}"]},
        {
            "settings": {"snapshots": "s3://bucket/a"},
            "driver": {"checkpoint": {"url": "abfss://box@account.net/a"}},
        },
        {"redis": {"url": "redis://[fd00::1]:6390/0"}, "spark": {"conf": {"spark.log.level": "INFO"}}},
    ],
)
def test_what_only_looks_wrong_is_taken(chart: Chart, values: Mapping[str, Any]) -> None:
    assert chart.render(merged(REAL, values)).pods


@pytest.mark.parametrize(("given", "rendered"), [(30, "30"), (2.5, "2.5"), (86_400, "86400")])
def test_a_setting_of_seconds_may_have_a_fraction(chart: Chart, given: float, rendered: str) -> None:
    found = chart.render(merged(REAL, {"settings": {"gap_alarm_s": given}})).of("ConfigMap")["settings"]
    assert found["data"]["BETTONG_GAP_ALARM_S"] == rendered
