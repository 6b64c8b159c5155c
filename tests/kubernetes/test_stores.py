"""How pods speak to a Kafka and a Redis that are there: by files of Secrets, and no secret in any object."""

from typing import Any

import pytest

from bettong.config.processor import ProcessorSettings
from bettong.config.reading import read
from tests.kubernetes.chart import RELEASE, Chart
from tests.kubernetes.test_values import container
from tests.kubernetes.value_sets import MATRIX, merged

REDIS: dict[str, Any] = {
    "redis": {
        "url": "rediss://redis:6380/0",
        "tls": {"secretName": "redis-ca"},
        "auth": {"user": "bettong", "secretName": "redis-user", "key": "word"},
    }
}
OWN = [
    f"{kind}/{RELEASE}-bettong-{name}"
    for kind, name in (
        ("Deployment", "sender"),
        ("Deployment", "receiver"),
        ("StatefulSet", "worker"),
        ("StatefulSet", "driver"),
    )
]


@pytest.mark.parametrize(
    ("way", "more", "volumes"),
    [
        ("secrets-burstable", {}, {"kafka-tls": "kafka-ca", "kafka-sasl": "kafka-user"}),
        ("least-burstable", REDIS, {"redis-tls": "redis-ca", "redis-auth": "redis-user"}),
        ("least-burstable", {}, {}),
    ],
)
def test_every_pod_that_speaks_to_them_has_the_files(
    chart: Chart, way: str, more: dict[str, Any], volumes: dict[str, str]
) -> None:
    rendered = chart.render(merged(MATRIX[way], more))
    for owner in OWN:
        of_secrets = {
            each["name"]: each["secret"]["secretName"]
            for each in rendered.pods[owner].spec["volumes"]
            if each["name"].startswith(("kafka", "redis"))
        }
        assert of_secrets == volumes, owner
        mounts = {each["name"]: each for each in container(rendered.pods, owner)["volumeMounts"]}
        assert {mounts[name]["mountPath"] for name in volumes} == {f"/etc/bettong/{name}" for name in volumes}
        assert all(mounts[name]["readOnly"] for name in volumes)


def test_the_services_take_what_the_chart_tells_them(chart: Chart, monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = MATRIX["secrets-burstable"]["kafka"]
    rendered = chart.render(merged(MATRIX["least-burstable"], {"kafka": kafka}, REDIS))
    data = rendered.of("ConfigMap")["settings"]["data"]
    for name, value in data.items():
        monkeypatch.setenv(name, value)
    settings = read(ProcessorSettings)
    connection = settings.kafka_connection
    assert (connection.security, connection.user, str(connection.ca)) == (
        "sasl_ssl",
        "ann",
        "/etc/bettong/kafka-tls/ca.crt",
    )
    assert str(connection.key) == "/etc/bettong/kafka-tls/tls.key"
    assert str(connection.password_file) == "/etc/bettong/kafka-sasl/password"
    assert str(settings.redis_connection.password_file) == "/etc/bettong/redis-auth/word"
    assert settings.redis_connection.user == "bettong"


def test_in_plain_text_nothing_is_said(chart: Chart) -> None:
    data = chart.render(MATRIX["least-burstable"]).of("ConfigMap")["settings"]["data"]
    assert {name for name in data if name.startswith(("BETTONG_KAFKA", "BETTONG_REDIS"))} == {
        "BETTONG_KAFKA",
        "BETTONG_REDIS",
    }
