"""What values do: counts that survive a scale, messages for what is wrong, settings that reach the services."""

import re
from collections.abc import Mapping
from typing import Any

import pytest
import yaml

from bettong.cluster.objects import FIXED
from bettong.config.console import ConsoleSettings
from bettong.config.processor import ProcessorSettings
from bettong.config.reading import read
from bettong.config.receiver import ReceiverSettings
from bettong.config.sender import SenderSettings
from bettong.config.service import PREFIX, ServiceSettings
from docs.render_chart import CHART, DECIDED
from tests.kubernetes.chart import FOLDER, NAMESPACE, REAL, RELEASE, CallError, Chart, Pod
from tests.kubernetes.value_sets import MATRIX, leaves, merged


@pytest.mark.parametrize("way", ["least-burstable", "many-guaranteed", "autoscaled-burst"])
@pytest.mark.parametrize("upgrade", [False, True])
def test_counts_that_kubectl_scales_are_never_rendered(chart: Chart, way: str, *, upgrade: bool) -> None:
    rendered = chart.render(MATRIX[way], upgrade=upgrade)
    assert "replicas" not in rendered.of("StatefulSet")["worker"]["spec"]
    assert "replicas" not in rendered.of("Deployment")["sender"]["spec"]


def test_a_count_that_is_given_is_rendered(chart: Chart) -> None:
    rendered = chart.render(MATRIX["fixed-burstable"])
    assert rendered.of("StatefulSet")["worker"]["spec"]["replicas"] == 3
    assert rendered.of("StatefulSet")["worker"]["metadata"]["annotations"] == {FIXED: "values"}
    assert rendered.of("Deployment")["sender"]["spec"]["replicas"] == 2
    assert rendered.of("Job") == {}


def test_each_service_has_its_image_by_one_repository_and_tag_or_by_a_whole_name(chart: Chart) -> None:
    pods = chart.render(
        merged(REAL, {"image": {"repository": "my/bettong", "tag": "7", "receiver": "other@sha256:1"}})
    ).pods
    images = {owner.rpartition("-")[2]: pod.spec["containers"][0]["image"] for owner, pod in pods.items()}
    assert images == {
        "sender": "my/bettong/sender:7",
        "test": "my/bettong/sender:7",
        "receiver": "other@sha256:1",
        **dict.fromkeys(("master", "worker", "driver"), "my/bettong/processor:7"),
    }


def test_a_container_of_a_service_starts_by_the_entry_point_of_its_image(chart: Chart) -> None:
    pods = chart.render(REAL).pods
    asked = {
        owner.rpartition("-")[2] for owner, pod in pods.items() if "command" in pod.spec["containers"][0]
    }
    assert asked == {"test"}  # the others have tini as their first process


def test_first_counts_are_set_once_by_a_job_that_may_do_nothing_else(chart: Chart) -> None:
    rendered = chart.render(MATRIX["many-burstable"])
    job = rendered.of("Job")["first-counts"]
    assert job["metadata"]["annotations"]["helm.sh/hook"] == "post-install"
    assert job["spec"]["template"]["spec"]["containers"][0]["args"] == [
        "deployments/trial-bettong-sender=3",
        "statefulsets/trial-bettong-worker=4",
    ]
    assert rendered.of("Role")["first-counts"]["rules"] == [
        {
            "apiGroups": ["apps"],
            "resources": [f"{resource}/scale"],
            "resourceNames": [f"trial-bettong-{name}"],
            "verbs": ["get", "patch"],
        }
        for resource, name in (("deployments", "sender"), ("statefulsets", "worker"))
    ]
    account = job["spec"]["template"]["spec"]["serviceAccountName"]
    (subject,) = rendered.of("RoleBinding")["first-counts"]["subjects"]
    assert subject == {"kind": "ServiceAccount", "name": account, "namespace": NAMESPACE}
    assert "first-counts" in rendered.of("ServiceAccount")
    assert chart.render(MATRIX["least-burstable"]).of("Job") == {}
    assert chart.render(MATRIX["autoscaled-burstable"]).of("Job") == {}


def container(pods: Mapping[str, Pod], owner: str) -> dict[str, Any]:
    (found,) = pods[owner].spec["containers"]
    return found  # type: ignore[no-any-return]


def env(pods: Mapping[str, Pod], owner: str) -> dict[str, str]:
    return {each["name"]: each.get("value", "") for each in container(pods, owner)["env"]}


def test_settings_reach_the_services_under_their_names(chart: Chart) -> None:
    rendered = chart.render(MATRIX["full-burstable"])
    known = {
        PREFIX + name.upper()
        for kind in (SenderSettings, ProcessorSettings, ReceiverSettings, ConsoleSettings)
        for name in kind.model_fields
    }
    data = rendered.of("ConfigMap")["settings"]["data"]
    assert data[f"{PREFIX}PARTITIONS"] == "32"
    assert data[f"{PREFIX}COMPILED"] == "false"
    assert data[f"{PREFIX}SCHEDULE"] == "micro-batch"
    assert data.keys() <= known
    ours = {name for owner in rendered.pods for name in _variables(rendered.pods[owner])}
    assert {name for name in ours if name.startswith(PREFIX)} <= known


def _variables(pod: Pod) -> set[str]:
    return {each["name"] for one in pod.containers for each in one.get("env", [])}


@pytest.mark.parametrize(
    ("kind", "owner"),
    [
        (SenderSettings, "Deployment/trial-bettong-topic-sender"),
        (ProcessorSettings, "StatefulSet/trial-bettong-driver"),
        (ReceiverSettings, "Deployment/trial-bettong-receiver"),
        (ConsoleSettings, "Deployment/trial-bettong-console"),
    ],
)
def test_the_settings_of_the_chart_are_taken_by_the_services(
    chart: Chart, kind: type[ServiceSettings], owner: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    rendered = chart.render(MATRIX["full-burstable"])
    variables = {**rendered.of("ConfigMap")["settings"]["data"], **env(rendered.pods, owner)}
    for name, value in variables.items():
        if name.startswith(PREFIX):
            monkeypatch.setenv(name, value)
    settings = read(kind)
    assert settings.partitions == 32
    assert settings.kafka == "kafka-0.kafka:9092,kafka-1.kafka:9094"


def test_settings_that_the_chart_decides_are_those_that_there_are() -> None:
    kinds = (SenderSettings, ProcessorSettings, ReceiverSettings, ConsoleSettings)
    fields = {name for kind in kinds for name in kind.model_fields}
    assert fields >= DECIDED
    assert set(CHART.settings_schema()["properties"]) == fields - DECIDED


def test_threads_follow_the_cpus(chart: Chart) -> None:
    rendered = chart.render(MATRIX["least-pinned"])
    pods = rendered.pods
    assert env(pods, "Deployment/trial-bettong-sender")["OMP_NUM_THREADS"] == "2"
    worker = "StatefulSet/trial-bettong-worker"
    assert env(pods, worker)["OMP_NUM_THREADS"] == "1"
    assert "--cores 4 " in " ".join(container(pods, worker)["args"])
    conf = rendered.of("ConfigMap")["spark"]["data"]["spark-defaults.conf"]
    assert "spark.executor.extraJavaOptions -XX:ActiveProcessorCount=4\n" in conf
    assert "spark.driver.extraJavaOptions -XX:ActiveProcessorCount=2\n" in conf
    few = chart.render(merged(MATRIX["least-pinned"], {"worker": {"slots": 2}})).pods
    assert env(few, worker)["OMP_NUM_THREADS"] == "2"


def test_only_workers_go_to_nodes_that_are_kept_for_them(chart: Chart) -> None:
    pods = chart.render(MATRIX["full-pinned"]).pods
    tolerant = [owner for owner, pod in pods.items() if "tolerations" in pod.spec]
    assert tolerant == ["StatefulSet/trial-bettong-worker"]
    worker = pods["StatefulSet/trial-bettong-worker"].spec
    assert worker["nodeSelector"] == {"bettong/dedicated": "worker"}
    assert pods["Deployment/trial-bettong-sender"].spec["nodeSelector"] == {"disk": "ssd"}


def test_a_drain_never_waits_for_a_component_of_one_pod(chart: Chart) -> None:
    budgets = chart.render(MATRIX["full-burstable"]).of("PodDisruptionBudget")
    assert set(budgets) == {"sender", "topic-sender", "receiver", "console", "master", "worker", "driver"}
    assert all(each["spec"]["maxUnavailable"] == 1 for each in budgets.values())


def test_pods_begin_anew_when_their_settings_change(chart: Chart) -> None:
    one = chart.render(MATRIX["least-burstable"]).pods
    other = chart.render(merged(MATRIX["least-burstable"], {"settings": {"partitions": 7}})).pods
    changed = {owner for owner in one if one[owner].annotations != other[owner].annotations}
    assert {owner.rpartition("-")[2] for owner in changed} == {"sender", "receiver", "worker", "driver"}


def test_the_bundled_kafka_begins_anew_when_its_settings_change(chart: Chart) -> None:
    sums = [
        pod.annotations["checksum/kafka-settings"]
        for name in ("one", "other")  # which its address holds
        for pod in chart.render(merged(MATRIX["bundled-burstable"], {"fullnameOverride": name})).pods.values()
        if pod.owner.endswith("-kafka")
    ]
    assert len(set(sums)) == 2


def test_probes_ask_for_life_and_readiness_apart(chart: Chart) -> None:
    pods = chart.render(MATRIX["full-burstable"]).pods
    for owner, port in (("sender", 7100), ("topic-sender", 7100), ("receiver", 7200)):
        found = container(pods, f"Deployment/{RELEASE}-bettong-{owner}")
        assert found["livenessProbe"]["grpc"] == {"port": port, "service": "alive"}
        assert found["startupProbe"]["grpc"] == {"port": port, "service": "alive"}
        assert found["readinessProbe"]["grpc"] == {"port": port}
    driver = container(pods, f"StatefulSet/{RELEASE}-bettong-driver")
    assert driver["startupProbe"]["exec"]["command"][-1] == "--running"
    assert driver["livenessProbe"]["exec"]["command"][-2:] == ["--stalled-s", "600"]
    for owner in ("master", "worker"):
        found = container(pods, f"StatefulSet/{RELEASE}-bettong-{owner}")
        assert all(found[f"{kind}Probe"]["httpGet"]["path"] == "/json/" for kind in ("startup", "liveness"))
    worker = container(pods, f"StatefulSet/{RELEASE}-bettong-worker")
    assert worker["readinessProbe"]["exec"]["command"][-1] == "/etc/bettong/spark/registered.py"
    assert "registered.py" in chart.render(MATRIX["full-burstable"]).of("ConfigMap")["spark"]["data"]


def test_no_probe_of_a_store_is_content_with_an_open_port(chart: Chart) -> None:
    pods = chart.render(MATRIX["bundled-burstable"]).pods
    for owner in ("kafka", "redis"):
        found = container(pods, f"StatefulSet/{RELEASE}-bettong-{owner}")
        assert {
            key: next(iter(value)) for key, value in found.items() if key.endswith("Probe")
        } == dict.fromkeys(("startupProbe", "livenessProbe", "readinessProbe"), "exec")


def test_a_pod_that_leaves_gives_its_clients_time(chart: Chart) -> None:
    pods = chart.render(MATRIX["least-burstable"]).pods
    for owner in ("sender", "receiver"):
        found = f"Deployment/{RELEASE}-bettong-{owner}"
        assert env(pods, found)["BETTONG_DRAIN_MS"] == "5000"
        assert "lifecycle" not in container(pods, found)
    stop = container(pods, f"StatefulSet/{RELEASE}-bettong-worker")["lifecycle"]["preStop"]
    assert stop == {"exec": {"command": ["sh", "-c", "kill -s PWR 1; sleep 10"]}}


def test_policies_open_what_is_needed_and_no_more(chart: Chart) -> None:
    policies = chart.render(MATRIX["least-burstable"]).of("NetworkPolicy")
    everything = policies[""]["spec"]
    assert everything["policyTypes"] == ["Ingress", "Egress"]
    assert "ingress" not in everything
    assert [port["port"] for port in everything["egress"][0]["ports"]] == [53, 53]
    ports = {
        name: [p["port"] for r in policies[name]["spec"]["egress"] for p in r["ports"]]
        for name in ("sender", "driver")
    }
    assert ports == {"sender": [9092, 9094, 6380], "driver": [7077, 7090, 9092, 9094, 6380]}
    assert "from" not in policies["sender"]["spec"]["ingress"][0]
    closed = chart.render(MATRIX["full-burstable"]).of("NetworkPolicy")["sender"]["spec"]["ingress"][0]
    assert len(closed["from"]) == 2  # the clients that were named, and the pod of `helm test`
    secret = chart.render(MATRIX["secrets-burstable"]).of("NetworkPolicy")["sender"]["spec"]["egress"]
    assert secret[1]["ports"][0]["port"] == 6390


def test_the_bundled_broker_may_call_itself_to_end_transactions(chart: Chart) -> None:
    policy = chart.render(MATRIX["bundled-burstable"]).of("NetworkPolicy")["kafka"]["spec"]
    (out,) = policy["egress"]
    (peer,) = out["to"]
    assert peer["podSelector"]["matchLabels"] == policy["podSelector"]["matchLabels"]
    assert peer in policy["ingress"][0]["from"]


def test_the_users_variable_takes_the_place_of_the_charts(chart: Chart) -> None:
    given = {"env": [{"name": "OMP_NUM_THREADS", "value": "9"}, {"name": "HOME", "value": "/h"}]}
    parts = ("sender", "topicSender", "receiver", "console", "master", "worker", "driver")
    pods = chart.render(merged(MATRIX["full-pinned"], dict.fromkeys(parts, given))).pods
    for owner, pod in pods.items():
        names = [each["name"] for each in pod.containers[0].get("env", [])]
        assert len(names) == len(set(names)), owner
        if not owner.endswith("-test"):
            variables = env(pods, owner)
            assert (variables["OMP_NUM_THREADS"], variables["HOME"]) == ("9", "/h"), owner
            assert names[0] == "POD_IP", owner  # others refer to it, and must stand behind it


def test_what_comes_and_goes_goes_to_the_senders_nodes(chart: Chart) -> None:
    scheduling = {"nodeSelector": {"disk": "ssd"}, "tolerations": [{"operator": "Exists"}]}
    given = merged(MATRIX["bundled-burstable"], {"sender": {"initialReplicas": 2, **scheduling}})
    pods = chart.render(given).pods
    there = {
        owner.rpartition("-")[2] for owner, pod in pods.items() if scheduling.items() <= pod.spec.items()
    }
    assert there == {"sender", "counts", "test", "kafka", "redis"}


def test_releases_of_one_name_in_two_namespaces_have_classes_of_their_own(chart: Chart) -> None:
    rendered = chart.render(MATRIX["full-burstable"])
    (found,) = rendered.of("PriorityClass").values()
    assert found["metadata"]["name"] == f"{RELEASE}-bettong-{NAMESPACE}"
    assert {pod.spec["priorityClassName"] for pod in rendered.pods.values()} == {found["metadata"]["name"]}


def test_a_url_with_a_query_names_its_port(chart: Chart) -> None:
    values = merged(REAL, {"redis": {"url": "redis://redis:6390?db=2"}})
    egress = chart.render(values).of("NetworkPolicy")["sender"]["spec"]["egress"]
    assert egress[-1]["ports"] == [{"port": 6390, "protocol": "TCP"}]


@pytest.mark.parametrize(
    ("way", "secret"),
    [
        (
            "many-burstable",
            {"secretName": "trial-bettong-tls", "items": [{"key": "ca.crt", "path": "ca.crt"}]},
        ),
        ("secrets-burstable", {"secretName": "tester"}),
    ],
)
def test_the_test_speaks_tls_where_the_services_do(chart: Chart, way: str, secret: dict[str, Any]) -> None:
    pods = chart.render(MATRIX[way]).pods
    owner = "Pod/trial-bettong-test"
    assert env(pods, owner)["BETTONG_CLIENT_CA"] == "/etc/bettong/client/ca.crt"
    (volume,) = [each for each in pods[owner].spec["volumes"] if each["name"] == "client"]
    assert volume["secret"] == {"defaultMode": 0o440, **secret}
    mounts = {each["name"]: each["mountPath"] for each in container(pods, owner)["volumeMounts"]}
    assert mounts["client"] == "/etc/bettong/client"


def test_there_is_no_test_that_cannot_pass(chart: Chart) -> None:
    for more in ({"tls": {"clients": True}}, {"tokens": {"secretName": "a"}}):
        rendered = chart.render(merged(REAL, {"tls": {"secretName": "b"}}, more))
        assert not any(each["metadata"]["name"].endswith("-test") for each in rendered.objects)


def test_one_sender_reads_external_topics_and_the_others_none(chart: Chart) -> None:
    pods = chart.render(MATRIX["full-burstable"]).pods
    assert env(pods, "Deployment/trial-bettong-sender")["BETTONG_SENDER_TOPICS"] == "none"
    assert env(pods, "Deployment/trial-bettong-topic-sender")["BETTONG_SENDER_TOPICS"] == "orders"


def test_extra_objects_are_rendered_as_templates(chart: Chart) -> None:
    rendered = chart.render(MATRIX["full-burstable"])
    names = {each["metadata"]["name"] for each in rendered.objects}
    assert {"trial-extra", "extra"} <= names


def test_a_secret_holds_what_must_not_be_read(chart: Chart) -> None:
    rendered = chart.render(MATRIX["secrets-burstable"])
    assert "BETTONG_REDIS" not in rendered.of("ConfigMap")["settings"]["data"]
    for name in ("sender", "receiver"):
        found = container(rendered.pods, f"Deployment/trial-bettong-{name}")["env"]
        assert {
            "name": "BETTONG_REDIS",
            "valueFrom": {"secretKeyRef": {"name": "redis", "key": "url"}},
        } in found


def test_who_serves_grpc_has_certificates_and_tokens_by_files_alone(chart: Chart) -> None:
    rendered = chart.render(MATRIX["secrets-burstable"])
    for name, port in (("sender", 7101), ("receiver", 7201)):
        owner = f"Deployment/trial-bettong-{name}"
        variables = env(rendered.pods, owner)
        assert variables["BETTONG_TLS_CERTIFICATE"] == "/etc/bettong/tls/tls.crt"
        assert variables["BETTONG_TLS_KEY"] == "/etc/bettong/tls/tls.key"
        assert variables["BETTONG_TLS_CLIENTS"] == "/etc/bettong/tls/ca.crt"
        assert variables["BETTONG_TOKENS"] == "/etc/bettong/tokens/tokens.toml"
        assert variables["BETTONG_HEALTH_LISTEN"] == f"0.0.0.0:{port}"
        found = container(rendered.pods, owner)
        assert {found[f"{kind}Probe"]["grpc"]["port"] for kind in ("startup", "liveness", "readiness")} == {
            port
        }
        assert port not in [each["containerPort"] for each in found["ports"]]
        mounts = {each["name"]: each for each in found["volumeMounts"]}
        secrets = {each["name"]: each.get("secret") for each in rendered.pods[owner].spec["volumes"]}
        for volume, secret in (("tls", "certificate"), ("tokens", "tokens")):
            assert mounts[volume]["readOnly"] is True
            assert secrets[volume] == {"secretName": secret, "defaultMode": 0o440}
    others = [name for name in rendered.pods if not name.endswith(("sender", "receiver", "console"))]
    assert others
    assert not any("'certificate'" in str(rendered.pods[name].spec.get("volumes")) for name in others)
    assert "certificate" not in str(rendered.of("ConfigMap"))


def test_every_value_is_used_by_a_template() -> None:
    """By name: a value that no template mentions does nothing."""
    templates = "\n".join(
        path.read_text()
        for folder in ("templates", "files")  # thresholds of alerts are put into a file
        for path in FOLDER.joinpath(folder).rglob("*")
        if path.is_file() and path.suffix != ".pyc"
    )
    values = yaml.safe_load((FOLDER / "values.yaml").read_text())
    unused = [path for path in leaves(values) if not re.search(rf"\b{path.rpartition('.')[2]}\b", templates)]
    assert unused == []


@pytest.mark.parametrize("path", ["sender", "sender.service", "kafka.tls", "driver.checkpoint.persistence"])
def test_a_section_that_was_deleted_is_named(chart: Chart, path: str) -> None:
    values: Any = None
    for part in reversed(path.split(".")):
        values = {part: values}
    last = path.rsplit(".", 1)[-1]
    with pytest.raises(CallError, match=rf"(?s)the specifications of the schema.*missing.*{last}"):
        chart.render(values)


def test_the_chart_has_the_version_of_the_project() -> None:
    chart = yaml.safe_load((FOLDER / "Chart.yaml").read_text())
    project = (FOLDER.parent.parent.parent / "pyproject.toml").read_text()
    assert f'\nversion = "{chart["appVersion"]}"\n' in project
