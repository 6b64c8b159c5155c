"""The console in the chart: off by default, reached by port-forward, or with TLS and tokens by a Service."""

from __future__ import annotations

import pytest
import yaml

from bettong.config.console import ConsoleSettings
from bettong.config.reading import read
from bettong.config.service import PREFIX
from bettong.services import CONSOLE, CONSOLE_PORT
from tests.kubernetes.chart import FOLDER, NAMESPACE, RELEASE, Chart, Rendered
from tests.kubernetes.test_values import container, env
from tests.kubernetes.value_sets import MATRIX, merged

OWNER = f"Deployment/{RELEASE}-bettong-console"
HEALTH_PORT = 7401
ON = {"console": {"enabled": True}}


@pytest.fixture
def alone(chart: Chart) -> Rendered:
    """For port-forward alone."""
    return chart.render(MATRIX["full-burstable"])


@pytest.fixture
def reached(chart: Chart) -> Rendered:
    """With TLS and tokens."""
    return chart.render(MATRIX["secrets-burstable"])


def settings(rendered: Rendered, monkeypatch: pytest.MonkeyPatch) -> ConsoleSettings:
    """What the console reads in its pod; files need not be there for that."""
    variables = {**rendered.of("ConfigMap")["settings"]["data"], **env(rendered.pods, OWNER)}
    for name, value in variables.items():
        if name.startswith(PREFIX):
            monkeypatch.setenv(name, value)
    return read(ConsoleSettings)


def test_it_is_off_by_default(chart: Chart) -> None:
    rendered = chart.render(MATRIX["least-burstable"])
    assert not [each for each in rendered.objects if each["metadata"]["name"].endswith("-console")]


def test_the_image_is_its_own_and_runs_the_command(alone: Rendered) -> None:
    found = container(alone.pods, OWNER)
    assert found["image"].partition(":")[0] == f"bettong/{CONSOLE}"
    assert found["args"] == ["bettong", CONSOLE]
    assert {each["name"]: each["containerPort"] for each in found["ports"]} == {
        "page": CONSOLE_PORT,
        "health": HEALTH_PORT,
    }


def test_probes_ask_in_plain_text_whether_it_lives_also_with_tls(alone: Rendered, reached: Rendered) -> None:
    for rendered in (alone, reached):
        found = container(rendered.pods, OWNER)
        asked = [found[f"{kind}Probe"]["httpGet"] for kind in ("startup", "liveness", "readiness")]
        assert asked == [{"port": "health", "path": "/alive"}] * 3
        assert env(rendered.pods, OWNER)["BETTONG_HEALTH_LISTEN"] == f"0.0.0.0:{HEALTH_PORT}"


def test_without_tls_and_tokens_it_listens_on_loopback_and_nobody_is_let_in(
    alone: Rendered, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = settings(alone, monkeypatch)
    assert (found.console_listen, found.tls_certificate, found.tokens) == (
        f"127.0.0.1:{CONSOLE_PORT}",
        None,
        None,
    )
    assert CONSOLE not in alone.of("Service")
    assert "ingress" not in alone.of("NetworkPolicy")[CONSOLE]["spec"]


def test_with_tls_and_tokens_it_has_a_service_certificates_and_tokens(
    reached: Rendered, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = settings(reached, monkeypatch)
    assert found.console_listen == f"0.0.0.0:{CONSOLE_PORT}"
    assert (str(found.tls_certificate), str(found.tokens)) == (
        "/etc/bettong/tls/tls.crt",
        "/etc/bettong/tokens/tokens.toml",
    )
    (port,) = reached.of("Service")[CONSOLE]["spec"]["ports"]
    assert (port["port"], port["targetPort"]) == (CONSOLE_PORT, "page")
    mounted = {each["name"] for each in container(reached.pods, OWNER)["volumeMounts"]}
    assert {"tls", "tokens"} <= mounted


@pytest.mark.parametrize("more", [{"tls": {"secretName": "a"}}, {}])
def test_half_of_tls_and_tokens_is_as_none(
    chart: Chart, more: dict[str, dict[str, str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered = chart.render(merged(MATRIX["least-burstable"], ON, more))
    assert settings(rendered, monkeypatch).tls_certificate is None
    assert CONSOLE not in rendered.of("Service")


def test_its_policy_lets_in_viewers_and_out_to_kafka_and_redis(chart: Chart, reached: Rendered) -> None:
    viewers = [{"namespaceSelector": {"matchLabels": {"team": "operators"}}}]
    policies = merged(MATRIX["secrets-burstable"], {"networkPolicies": {"viewers": viewers}})
    (rule,) = chart.render(policies).of("NetworkPolicy")[CONSOLE]["spec"]["ingress"]
    assert rule == {"ports": [{"port": CONSOLE_PORT, "protocol": "TCP"}], "from": viewers}
    policy = reached.of("NetworkPolicy")[CONSOLE]["spec"]
    assert "from" not in policy["ingress"][0]
    assert [each["port"] for rule in policy["egress"] for each in rule["ports"]] == [9092, 9094, 6390]
    bundled = chart.render(merged(MATRIX["bundled-burstable"], ON)).of("NetworkPolicy")
    for store in ("kafka", "redis"):
        peers = [peer["podSelector"]["matchLabels"] for peer in bundled[store]["spec"]["ingress"][0]["from"]]
        assert bundled[CONSOLE]["spec"]["podSelector"]["matchLabels"] in peers


def test_a_certificate_of_cert_manager_is_for_its_service_too(chart: Chart) -> None:
    tokens = {"tokens": {"secretName": "tokens"}}
    names = chart.render(merged(MATRIX["many-burstable"], ON, tokens)).of("Certificate")[""]["spec"][
        "dnsNames"
    ]
    assert f"{RELEASE}-bettong-console.{NAMESPACE}.svc" in names
    without = chart.render(MATRIX["many-burstable"]).of("Certificate")[""]["spec"]["dnsNames"]
    assert not [name for name in without if "console" in name]


def test_it_looks_on_while_the_application_is_repartitioned(chart: Chart) -> None:
    rendered = chart.render(merged(MATRIX["repartitioned-burstable"], ON))
    assert rendered.of("Deployment")[CONSOLE]["spec"]["replicas"] == 1
    assert rendered.of("Deployment")["receiver"]["spec"]["replicas"] == 0


def test_its_resources_are_those_of_its_values(alone: Rendered) -> None:
    values = yaml.safe_load((FOLDER / "values.yaml").read_text())[CONSOLE]["resources"]
    requests = container(alone.pods, OWNER)["resources"]["requests"]
    assert (requests["cpu"], requests["memory"]) == (str(values["cpu"]), values["memory"])
