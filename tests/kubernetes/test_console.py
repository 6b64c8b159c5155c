"""The console in the chart: off by default, reached by port-forward, or with TLS and tokens by a Service."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from bettong.cluster import acting
from bettong.cluster.api import Cluster
from bettong.cluster.permissions import SCALING
from bettong.config.console import ConsoleSettings
from bettong.config.reading import read
from bettong.config.service import PREFIX
from bettong.services import CONSOLE, CONSOLE_PORT
from tests.console.api_server import ApiServer, served_api
from tests.kubernetes.chart import FOLDER, NAMESPACE, RELEASE, CallError, Chart, Rendered
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
    ports = [each["port"] for rule in policy["egress"] for each in rule["ports"]]
    assert ports == [
        7100,
        9092,
        9094,
        6390,
        443,
        6443,
    ]  # the sender and the API server, for it may change something
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


def test_its_role_is_what_a_scale_needs_and_no_more(
    reached: Rendered, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = reached.of("Role")[CONSOLE]["rules"]
    assert [{key: rule[key] for key in ("apiGroups", "resources", "verbs")} for rule in rules] == [
        each.as_object() for each in SCALING
    ]
    monkeypatch.setenv("KUBECONFIG", str(tmp_path / "kubeconfig"))
    api = ApiServer(rules=rules)
    with served_api(api, tmp_path / "kubeconfig"), Cluster() as cluster:
        acting.scale(cluster, RELEASE, 4)
    assert api.replicas == 4
    assert len({(verb, resource) for verb, resource, _ in api.calls}) == len(rules)


def test_the_role_is_bound_to_its_pod_which_alone_has_a_token_for_it(reached: Rendered) -> None:
    account = reached.pods[OWNER].spec["serviceAccountName"]
    binding = reached.of("RoleBinding")[CONSOLE]
    assert binding["roleRef"]["name"] == f"{RELEASE}-bettong-console"
    assert binding["subjects"] == [{"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}]
    assert [name for name, pod in reached.pods.items() if pod.spec["automountServiceAccountToken"]] == [OWNER]


def test_where_changes_are_allowed_it_knows_its_release_and_its_sender(
    chart: Chart, reached: Rendered, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = settings(reached, monkeypatch)
    assert (found.console_allow_changes, found.console_release) == (True, RELEASE)
    assert found.console_sender == f"{RELEASE}-bettong-sender:7100"
    files = [value for value in env(reached.pods, OWNER).values() if value.startswith("/etc/bettong/client/")]
    assert [Path(each).name for each in files] == ["ca.crt", "tls.crt", "tls.key", "token"]
    clients = {"networkPolicies": {"clients": [{"podSelector": {"matchLabels": {"team": "a"}}}]}}
    policies = chart.render(merged(MATRIX["secrets-burstable"], clients)).of("NetworkPolicy")
    assert policies[CONSOLE]["spec"]["podSelector"] in [
        each["podSelector"] for each in policies["sender"]["spec"]["ingress"][0]["from"]
    ]


def test_what_it_may_is_not_given_to_the_account_of_all_pods_of_the_namespace(chart: Chart) -> None:
    nobodys = {"serviceAccount": {"create": False}}
    with pytest.raises(CallError, match=r"serviceAccount: console\.allowChanges would let every pod"):
        chart.render(merged(MATRIX["secrets-burstable"], nobodys))
    with pytest.raises(CallError, match=r"give serviceAccount\.name of an account of this release alone"):
        chart.render(
            merged(MATRIX["secrets-burstable"], {"serviceAccount": {"name": "default", "create": False}})
        )
    given = merged(MATRIX["secrets-burstable"], {"serviceAccount": {"create": False, "name": "given"}})
    assert chart.render(given).of("RoleBinding")[CONSOLE]["subjects"][0]["name"] == "given"
    # Without changes no Role is bound to it.
    assert chart.render(merged(MATRIX["least-burstable"], ON, nobodys)).of("RoleBinding") == {}


def test_without_changes_it_may_nothing_and_without_tokens_they_are_refused(
    chart: Chart, alone: Rendered
) -> None:
    assert CONSOLE not in alone.of("Role")
    assert alone.pods[OWNER].spec["automountServiceAccountToken"] is False
    changing = {"console": {"enabled": True, "allowChanges": True}}
    with pytest.raises(CallError, match="only people with a token may change something"):
        chart.render(merged(MATRIX["least-burstable"], changing))
