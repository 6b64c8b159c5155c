"""The chart runs the services as their entries say."""

import pytest

from bettong.services import METRICS_PORT, SERVICES, ServiceEntry
from tests.kubernetes.chart import RELEASE, Chart
from tests.kubernetes.test_values import env
from tests.kubernetes.value_sets import MATRIX

each_service = pytest.mark.parametrize("entry", SERVICES.values(), ids=SERVICES.keys())


def component_of(owner: str) -> str:
    return owner.partition(f"{RELEASE}-bettong-")[2]


def test_every_pod_with_an_image_of_ours_is_a_component_of_its_service(chart: Chart) -> None:
    found: dict[str, set[str]] = {}
    for owner, pod in chart.render(MATRIX["full-burstable"]).pods.items():
        image = pod.spec["containers"][0]["image"].partition("@")[0].partition(":")[0].rpartition("/")[2]
        if component_of(owner) != "test":  # sends and receives with the sender's image
            found.setdefault(image, set()).add(component_of(owner))
    assert {name: found.get(name) for name in SERVICES} == {
        name: set(entry.components) for name, entry in SERVICES.items()
    }


@each_service
def test_what_runs_a_service_has_its_ports_and_its_variables(chart: Chart, entry: ServiceEntry) -> None:
    rendered = chart.render(MATRIX["full-burstable"])
    running = {
        owner: pod.spec["containers"][0]
        for owner, pod in rendered.pods.items()
        if pod.spec["containers"][0].get("args") == list(entry.command)
    }
    assert {component_of(owner) for owner in running} & set(entry.components)
    for owner, container in running.items():
        assert component_of(owner) in entry.components
        ports = {each["name"]: each["containerPort"] for each in container["ports"]}
        variables = env(rendered.pods, owner)
        assert ports["metrics"] == METRICS_PORT
        assert variables["BETTONG_METRICS_LISTEN"] == f"0.0.0.0:{METRICS_PORT}"
        assert ports.get("grpc") == entry.grpc_port
        listen = variables.get(f"BETTONG_{entry.listen_setting.upper()}")
        assert listen == (f"0.0.0.0:{entry.grpc_port}" if entry.grpc_port is not None else None)


@each_service
def test_with_tls_the_probes_ask_at_the_health_port(chart: Chart, entry: ServiceEntry) -> None:
    rendered = chart.render(MATRIX["secrets-burstable"])
    listens = {
        env(rendered.pods, owner).get("BETTONG_HEALTH_LISTEN")
        for owner, pod in rendered.pods.items()
        if pod.spec["containers"][0].get("args") == list(entry.command)
    }
    assert listens == {f"0.0.0.0:{entry.health_port}" if entry.health_port is not None else None}


def test_services_are_reached_at_the_ports_of_their_entries(chart: Chart) -> None:
    rendered = chart.render(MATRIX["least-burstable"])
    found = {
        name: [port["port"] for port in service["spec"]["ports"] if port["name"] == "grpc"]
        for name, service in rendered.of("Service").items()
    }
    assert {name: ports for name, ports in found.items() if ports} == {
        name: [entry.grpc_port]
        for service, entry in SERVICES.items()
        if entry.grpc_port is not None
        for name in (service, f"{service}-headless")
    }
