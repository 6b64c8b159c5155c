"""What others do with a release: Prometheus reads it, KEDA scales it, cert-manager certifies it."""

from typing import Any

import pytest

from bettong.services import METRICS_PORT
from tests.kubernetes.chart import NAMESPACE, RELEASE, Chart, selects
from tests.kubernetes.test_values import container, env
from tests.kubernetes.value_sets import MATRIX, merged

FULL = MATRIX["full-burstable"]
METERED = ("sender", "topic-sender", "receiver", "driver")


def owner_of(name: str) -> str:
    return f"{'StatefulSet' if name == 'driver' else 'Deployment'}/{RELEASE}-bettong-{name}"


def test_without_a_word_nothing_is_scraped_and_no_object_of_an_operator_is_rendered(chart: Chart) -> None:
    rendered = chart.render(MATRIX["least-burstable"])
    assert {each["apiVersion"].partition("/")[0] for each in rendered.objects} <= {
        "v1",
        "apps",
        "autoscaling",
        "networking.k8s.io",
        "policy",
    }
    assert "metrics" not in str(rendered.objects).lower()


def test_every_service_of_ours_reports_its_metrics_once(chart: Chart) -> None:
    """A pod behind two services with the port would be read twice."""
    rendered = chart.render(FULL)
    (monitor,) = rendered.of("ServiceMonitor").values()
    assert monitor["apiVersion"] == "monitoring.coreos.com/v1"
    assert monitor["metadata"]["labels"]["release"] == "prometheus"
    assert monitor["spec"]["namespaceSelector"] == {"matchNames": [NAMESPACE]}
    (endpoint,) = monitor["spec"]["endpoints"]
    assert endpoint == {"port": "metrics", "honorLabels": True, "interval": "15s", "scrapeTimeout": "10s"}
    seen = {
        owner: [
            name
            for name, service in rendered.of("Service").items()
            if selects(monitor["spec"]["selector"]["matchLabels"], service["metadata"]["labels"])
            and selects(service["spec"]["selector"], rendered.pods[owner].labels)
            and any(port["name"] == "metrics" for port in service["spec"]["ports"])
        ]
        for owner in rendered.pods
    }
    assert {owner for owner, found in seen.items() if found} == {owner_of(name) for name in METERED}
    assert all(len(found) <= 1 for found in seen.values())
    for name in METERED:
        assert env(rendered.pods, owner_of(name))["BETTONG_METRICS_LISTEN"] == f"0.0.0.0:{METRICS_PORT}"
        ports = {
            each["name"]: each["containerPort"] for each in container(rendered.pods, owner_of(name))["ports"]
        }
        assert ports["metrics"] == METRICS_PORT


def test_metrics_are_for_those_that_are_named(chart: Chart) -> None:
    def rule(values: dict[str, Any], name: str) -> dict[str, Any]:
        (found,) = (
            each
            for each in chart.render(values).of("NetworkPolicy")[name]["spec"]["ingress"]
            if each["ports"] == [{"port": METRICS_PORT, "protocol": "TCP"}]
        )
        return dict(found)

    for name in METERED:
        assert rule(FULL, name)["from"] == FULL["networkPolicies"]["scrapers"]
    open_to_all = merged(FULL, {"networkPolicies": {"scrapers": []}})
    assert "from" not in rule(open_to_all, "sender")
    workers = chart.render(FULL).of("NetworkPolicy")["worker"]["spec"]["ingress"]
    assert METRICS_PORT not in [port["port"] for each in workers for port in each["ports"]]


@pytest.mark.parametrize(
    ("partitions", "slots", "most", "expected"),
    [(32, 1, 50, 32), (32, 4, 50, 32), (32, 4, 5, 5), (1, 8, 8, 1)],
)
def test_keda_scales_by_lag_up_to_the_partitions(
    chart: Chart, partitions: int, slots: int, most: int, expected: int
) -> None:
    values = merged(
        FULL,
        {"settings": {"partitions": partitions}, "worker": {"slots": slots, "keda": {"maxReplicas": most}}},
    )
    rendered = chart.render(values)
    (scaled,) = rendered.of("ScaledObject").values()
    assert scaled["apiVersion"] == "keda.sh/v1alpha1"
    assert scaled["spec"] == {
        "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "StatefulSet", "name": "trial-bettong-worker"},
        "minReplicaCount": 1,
        "maxReplicaCount": expected,
        "pollingInterval": 15,
        "triggers": [
            {
                "type": "metrics-api",
                "metadata": {
                    "url": f"http://trial-bettong-driver.{NAMESPACE}.svc:{METRICS_PORT}/metrics",
                    "format": "prometheus",
                    "valueLocation": "bettong_processor_lag_records",
                    "targetValue": "500",
                },
            }
        ],
    }
    assert "replicas" not in rendered.of("StatefulSet")["worker"]["spec"]
    assert "HorizontalPodAutoscaler" not in {each["kind"] for each in rendered.objects}


def test_keda_counts_for_itself_and_no_job_sets_a_first_count(chart: Chart) -> None:
    values = merged(FULL, {"worker": {"initialReplicas": 3}})
    assert chart.render(values).of("Job") == {}


def test_cert_manager_makes_one_certificate_for_all_names_of_the_services(chart: Chart) -> None:
    rendered = chart.render(MATRIX["many-burstable"])
    (certificate,) = rendered.of("Certificate").values()
    assert certificate["apiVersion"] == "cert-manager.io/v1"
    spec = certificate["spec"]
    assert spec["issuerRef"] == {"group": "cert-manager.io", "kind": "Issuer", "name": "ours"}
    assert {
        "trial-bettong-sender",
        f"trial-bettong-receiver-headless.{NAMESPACE}.svc",
        "feed.example",
        "localhost",  # for commands in a pod of the sender or receiver
    } <= set(spec["dnsNames"])
    services = {each["metadata"]["name"] for each in rendered.of("Service").values()}
    assert {name.partition(".")[0] for name in spec["dnsNames"]} - {"feed", "localhost"} <= services
    for name in ("sender", "receiver"):
        variables = env(rendered.pods, owner_of(name))
        assert variables["BETTONG_TLS_CERTIFICATE"] == "/etc/bettong/tls/tls.crt"
        volumes = {each["name"]: each for each in rendered.pods[owner_of(name)].spec["volumes"]}
        assert volumes["tls"]["secret"]["secretName"] == spec["secretName"] == "trial-bettong-tls"


def test_a_name_that_the_chart_gives_a_certificate_is_not_given_twice(chart: Chart) -> None:
    values = merged(
        MATRIX["many-burstable"], {"tls": {"certManager": {"dnsNames": ["localhost", "feed.example"]}}}
    )
    (certificate,) = chart.render(values).of("Certificate").values()
    assert certificate["spec"]["dnsNames"].count("localhost") == 1


def test_a_secret_that_is_named_is_the_one_that_cert_manager_fills(chart: Chart) -> None:
    rendered = chart.render(merged(MATRIX["many-burstable"], {"tls": {"secretName": "mine"}}))
    (certificate,) = rendered.of("Certificate").values()
    assert certificate["spec"]["secretName"] == "mine"


def test_connections_to_a_sender_grow_old_and_services_come_in_both_kinds(chart: Chart) -> None:
    rendered = chart.render(MATRIX["least-burstable"])
    assert env(rendered.pods, owner_of("sender"))["BETTONG_CONNECTION_AGE_MAX_S"] == "900"
    assert "BETTONG_CONNECTION_AGE_MAX_S" not in env(rendered.pods, owner_of("receiver"))
    services = rendered.of("Service")
    for name in ("sender", "receiver"):
        assert services[name]["spec"]["type"] == "ClusterIP"
        assert services[f"{name}-headless"]["spec"]["clusterIP"] == "None"
