"""Every query of alerts and dashboards, asked of a real Prometheus that reads the services' own endpoints.

It scrapes them as the chart's ServiceMonitor has it: with the labels that the operator gives to targets, of which
those of the series come first.
"""

import math
import re
from collections.abc import Iterator
from typing import Any
from urllib.error import HTTPError

import pytest
import yaml

from bettong.latency import BOUNDS_S
from bettong.local.redis_server import RedisServer
from tests.kubernetes.alert_rules import LABELS, NAMES, WATCHED, Rules, each_rule, rules, without_comparison
from tests.kubernetes.chart import RELEASE, Chart
from tests.kubernetes.dashboards import DASHBOARDS, panels
from tests.samples.scraped_services import ScrapedServices, scraped_services
from tests.servers.prometheus import PrometheusServer
from tests.waiting import eventually

pytestmark = pytest.mark.prometheus

# As Grafana puts them in. All of this test's steps lie in the interval, however slow the machine is.
CHOSEN = {
    "$namespace": LABELS["namespace"],
    "$release": RELEASE,
    "$stage": "orders|by-region",
    "$__rate_interval": "10m",
}
# What the services of this test have soon: so two alerts fire, for a dashboard to show.
THRESHOLDS = {"referenceAgeSeconds": 60, "snapshotAgeSeconds": 2}
FIRING = {"BettongReferenceTableOld", "BettongSnapshotsOld"}
STEPS = 4
LABEL_VALUES = re.compile(r"label_values\((?P<selector>.+), (?P<label>\w+)\)")


@pytest.fixture(scope="module")
def found_rules(chart: Chart) -> Rules:
    return rules(chart, {"thresholds": THRESHOLDS})


@pytest.fixture(scope="module")
def prometheus(
    found_rules: Rules, chart: Chart, redis_server: RedisServer, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[PrometheusServer]:
    """It has read some steps of services that go on."""
    folder = tmp_path_factory.mktemp("prometheus")
    path = folder / "rules.yaml"
    path.write_text(yaml.safe_dump(dict(found_rules)))
    (endpoint,) = chart.render(WATCHED).of("ServiceMonitor")[""]["spec"]["endpoints"]
    with scraped_services(redis_server.url, "queries") as services:
        configs = [scraped(service, address, endpoint) for service, address in services.addresses.items()]
        with PrometheusServer(folder, configs, [path]) as server:
            for step in range(1, STEPS + 1):
                go_on(services, server, step)
            yield server


def scraped(service: str, address: str, endpoint: dict[str, Any]) -> dict[str, Any]:
    """What the operator makes of a ServiceMonitor, for one pod of a service."""
    name = f"{RELEASE}-bettong-{service}"
    labels = {**LABELS, "service": name, "pod": f"{name}-0", "endpoint": endpoint["port"]}
    return {
        "job_name": name,
        "honor_labels": endpoint["honorLabels"],
        "static_configs": [{"targets": [address], "labels": labels}],
    }


def go_on(services: ScrapedServices, server: PrometheusServer, step: int) -> None:
    """Reports a step, and waits until Prometheus has read it."""
    services.report(step)
    counted = {
        "bettong_sender_messages_total": 1500,
        "bettong_receiver_latency_seconds_count": 1400,
        'bettong_partition_offset{partition="1"}': 10,
    }
    for series, each in counted.items():
        eventually(lambda: [value for _, value in server.ask(series)] == [each * step], what=series)  # noqa: B023


def numbers(server: PrometheusServer, expression: str, *, seconds: float = 30.0) -> list[float]:
    """The values of an expression, at least one, which are numbers. Fails when they are not there in time."""

    def found() -> list[float]:
        values = [value for _, value in server.ask(expression)]
        return values if all(map(math.isfinite, values)) else []

    return eventually(found, seconds=seconds, what=expression)


def chosen(expression: str) -> str:
    for name, value in CHOSEN.items():
        expression = expression.replace(name, value)
    assert "$" not in expression
    return expression


@pytest.mark.parametrize("alert", NAMES)
def test_what_an_alert_looks_at_is_there(
    prometheus: PrometheusServer, found_rules: Rules, alert: str
) -> None:
    (rule,) = [each for each in each_rule(found_rules) if each["alert"] == alert]
    for expression in without_comparison(rule["expr"]):
        numbers(prometheus, expression)


@pytest.mark.parametrize("bound_s", [BOUNDS_S[0], 1, BOUNDS_S[-1]])
def test_a_bucket_is_found_by_the_objective_however_it_is_written(
    prometheus: PrometheusServer, chart: Chart, bound_s: float
) -> None:
    found = each_rule(rules(chart, {"thresholds": {"latencySeconds": bound_s}}))
    (expression,) = [each["expr"] for each in found if each["alert"] == "BettongLatencyHigh"]
    (selector,) = re.findall(r"bettong_receiver_latency_seconds_bucket\{.*?\}", expression)
    assert [float(labels["le"]) for labels, _ in prometheus.ask(selector)] == [bound_s]


def test_prometheus_evaluates_every_rule_and_those_fire_that_should(prometheus: PrometheusServer) -> None:
    loaded = prometheus.rules()
    assert [each["name"] for each in loaded] == NAMES
    assert {(each["health"], each.get("lastError")) for each in loaded} == {("ok", None)}
    eventually(lambda: {each["name"] for each in prometheus.rules() if each["state"] == "firing"} >= FIRING)


@pytest.mark.parametrize(
    ("name", "title"),
    [(name, each["title"]) for name, dashboard in DASHBOARDS.items() for each in panels(dashboard)],
)
def test_every_query_of_a_panel_gives_a_number(prometheus: PrometheusServer, name: str, title: str) -> None:
    (panel,) = [each for each in panels(DASHBOARDS[name]) if each["title"] == title]
    for target in panel["targets"]:
        numbers(prometheus, chosen(target["expr"]))


@pytest.mark.parametrize("name", DASHBOARDS)
def test_what_one_may_choose_is_offered(prometheus: PrometheusServer, name: str) -> None:
    offered = {}
    for variable in DASHBOARDS[name]["templating"]["list"]:
        if variable["type"] == "query":
            match = LABEL_VALUES.fullmatch(chosen(variable["definition"]))
            assert match
            offered[variable["name"]] = prometheus.label_values(match["label"], match["selector"])
    assert offered.pop("stage", ["orders"]) == ["orders"]
    assert offered == {"namespace": [LABELS["namespace"]], "release": [RELEASE]}


def test_a_panel_of_rates_shows_what_came_in(prometheus: PrometheusServer) -> None:
    (panel,) = [each for each in panels(DASHBOARDS["overview"]) if each["title"] == "Messages in and out"]
    came_in, went_out = (numbers(prometheus, chosen(each["expr"])) for each in panel["targets"])
    assert came_in[0] > 0
    assert went_out[0] == pytest.approx(came_in[0] * 1400 / 1500, rel=0.5)


def test_a_query_of_what_there_is_not_fails_and_so_does_one_that_does_not_parse(
    prometheus: PrometheusServer,
) -> None:
    for wrong in ("bettong_sender_mesages_total", "bettong_sender_messages_total / 0"):
        with pytest.raises(AssertionError, match="not within"):
            numbers(prometheus, wrong, seconds=0.1)
    with pytest.raises(HTTPError):
        prometheus.ask("sum(bettong_sender_messages_total")
