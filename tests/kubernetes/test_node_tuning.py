"""The chart of node tuning: valid objects, privileges only where values are written, messages for what is wrong."""

import re
from collections.abc import Mapping
from typing import Any

import kubernetes_validate
import pytest
import yaml
from pydantic import ValidationError

from bettong_node_tuner.settings import PREFIX, TunerSettings, read
from docs.render_chart import TUNER_DECIDED, TUNING, described
from tests.kubernetes.chart import ROOT, CallError, Chart, Pod, helm, selects
from tests.kubernetes.chart import TUNING as FOLDER
from tests.kubernetes.test_objects import VERSIONS
from tests.kubernetes.value_sets import merged

DOCS = ROOT / "docs"
WAYS: Mapping[str, Mapping[str, Any]] = {
    "default": {},
    "off": {"mode": "off"},
    "revert": {"mode": "revert", "serviceAccount": {"create": False, "name": "given"}},
    "some": {
        "mode": "apply",
        "settings": {"sysctls": {"vm.swappiness": 1}, "thp": "madvise", "turbo": False},
    },
    "full": {
        "mode": "apply",
        "image": {"digest": "sha256:" + "0" * 64, "pullSecrets": ["pull"]},
        "settings": {
            "beside_others": True,
            "housekeeping_cpus": "0-1,8",
            "cpu_governor": "performance",
            "cpu_latency_us": 0,
            "thp_defrag": "defer+madvise",
            "swap_off": True,
            "hugepages_2m": 1_000_000,
            "hugepages_1g": 0,
            "irq_affinity": True,
            "rps": True,
            "workqueues": True,
            "sysctls": {"net.core.somaxconn": 8192, "net.ipv4.tcp_rmem": "4096 131072 6291456"},
            "fifo_priority": 5,
            "fifo_threads": ["rdk:*"],
        },
        "labels": {"team": "a"},
        "annotations": {"b": "c"},
        "affinity": {"nodeAffinity": {}},
        "priorityClassName": "high",
        "maxUnavailable": "10%",
    },
}


@pytest.fixture(scope="module")
def tuning() -> Chart:
    return Chart(FOLDER)


def pod_of(tuning: Chart, way: str) -> Pod:
    (found,) = tuning.render(WAYS[way]).pods.values()
    return found


def test_helm_finds_nothing_to_say() -> None:
    assert "0 chart(s) failed" in helm("lint", "--strict", str(FOLDER))


@pytest.mark.parametrize("way", WAYS)
def test_every_object_is_valid(tuning: Chart, way: str) -> None:
    rendered = tuning.render(WAYS[way])
    assert len(rendered.objects) == (4 if way == "revert" else 5)
    for each in rendered.objects:
        for version in VERSIONS:
            kubernetes_validate.validate(each, version, strict=True)
    (daemons,) = rendered.of("DaemonSet").values()
    (pod,) = rendered.pods.values()
    assert selects(daemons["spec"]["selector"]["matchLabels"], pod.labels)
    mounted = {mount["name"] for mount in pod.containers[0]["volumeMounts"]}
    assert mounted == {volume["name"] for volume in pod.spec["volumes"]}
    (binding,) = rendered.of("ClusterRoleBinding").values()
    assert binding["subjects"][0]["name"] == pod.spec["serviceAccountName"]


@pytest.mark.parametrize("way", WAYS)
def test_privileges_are_for_who_writes(tuning: Chart, way: str) -> None:
    pod, writes = pod_of(tuning, way), way not in {"default", "off"}
    (tuner,) = pod.containers
    assert tuner["securityContext"].get("privileged", False) is writes
    assert tuner["securityContext"]["readOnlyRootFilesystem"] is True
    host = {each["name"]: each.get("readOnly", False) for each in tuner["volumeMounts"]}
    assert {host[name] for name in ("sys", "proc")} == {not writes}
    assert ("dev" in host) is (way == "full")
    # A revert does not know what the journal on the node holds: sysctls of net and threads among it.
    assert (pod.spec.get("hostNetwork"), pod.spec.get("hostPID")) == (
        (True, True) if way in {"full", "revert"} else (None, None)
    )


def test_it_may_get_and_patch_nodes_and_nothing_else(tuning: Chart) -> None:
    rendered = tuning.render()
    (role,) = rendered.of("ClusterRole").values()
    assert role["rules"] == [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}]
    assert rendered.of("Role") == {}


def test_pods_are_for_nodes_that_opted_in(tuning: Chart) -> None:
    spec = pod_of(tuning, "default").spec
    assert spec["nodeSelector"] == {"bettong/tuned": "true"}
    assert [each["key"] for each in spec["tolerations"]] == ["bettong/untuned", "bettong/dedicated"]
    with pytest.raises(CallError, match="minProperties"):
        tuning.render({"nodeSelector": {"bettong/tuned": None}})


@pytest.mark.parametrize("way", WAYS)
def test_the_settings_of_the_chart_are_taken_by_the_tuner(
    tuning: Chart, way: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for each in pod_of(tuning, way).containers[0]["env"]:
        monkeypatch.setenv(each["name"], each.get("value", "node-1"))
    found = read({})
    assert found.mode.value == WAYS[way].get("mode", "dry-run")
    for name, value in WAYS[way].get("settings", {}).items():
        wanted = {key: str(each) for key, each in value.items()} if isinstance(value, dict) else value
        assert getattr(found, name) == wanted, name


def test_every_setting_is_a_value_or_the_charts_to_decide() -> None:
    values = yaml.safe_load((FOLDER / "values.yaml").read_text())
    fields = TunerSettings.model_fields.keys()
    assert (
        values["settings"].keys() == fields - TUNER_DECIDED == TUNING.settings_schema()["properties"].keys()
    )
    default = TunerSettings()
    for name, value in values["settings"].items():
        assert getattr(default, name) == value, name


def test_a_value_is_described_in_the_words_of_its_setting() -> None:
    values = described((FOLDER / "values.yaml").read_text().splitlines())
    comments = {each.path: each.comment for each in values}
    for name in TunerSettings.model_fields.keys() - TUNER_DECIDED:
        assert comments[f"settings.{name}"].startswith(str(TunerSettings.model_fields[name].description)), (
            name
        )


@pytest.mark.parametrize(
    ("values", "message"),
    [
        ({"mode": "on"}, "at '/mode': value must be one of 'off', 'dry-run', 'apply', 'revert'"),
        ({"setting": {}}, "additional properties 'setting' not allowed"),
        ({"settings": {"thpp": "never"}}, "at '/settings': additional properties 'thpp' not allowed"),
        ({"settings": {"thp": "often"}}, "at '/settings/thp'"),
        ({"settings": {"cpu_latency_us": -1}}, "at '/settings/cpu_latency_us': minimum: got -1, want 0"),
        (
            {"settings": {"sysctls": {"vm.swappiness": True}}},
            "at '/settings/sysctls/vm.swappiness': got boolean",
        ),
        ({"settings": {"root": "/"}}, "additional properties 'root' not allowed"),
        ({"journalPath": "/"}, "at '/journalPath'"),
        ({"resources": {"cpu": "0"}}, "at '/resources/cpu': '0' does not match"),
    ],
)
def test_what_is_wrong_is_reported(tuning: Chart, values: Mapping[str, Any], message: str) -> None:
    with pytest.raises(CallError) as raised:
        tuning.render(merged(values))
    assert message in str(raised.value)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"irq_affinity": True}, "settings.irq_affinity needs settings.housekeeping_cpus"),
        ({"rps": True}, "settings.rps needs settings.housekeeping_cpus"),
        ({"workqueues": True}, "settings.workqueues needs settings.housekeeping_cpus"),
        ({"fifo_priority": 5}, "settings.fifo_priority and settings.fifo_threads: give both, or none"),
        ({"fifo_threads": ["rdk:*"]}, "settings.fifo_priority and settings.fifo_threads: give both, or none"),
        ({"fifo_priority": 5, "fifo_threads": ["*"]}, "at '/settings/fifo_threads/0': '*' does not match"),
        ({"fifo_priority": 5, "fifo_threads": ["a" * 65]}, "at '/settings/fifo_threads/0': maxLength"),
        ({"sysctls": {"fs.file-max": 1}}, "invalid propertyName 'fs.file-max'"),
        ({"sysctls": {"vm.dirty_bytes": 1}}, "invalid propertyName 'vm.dirty_bytes'"),
        ({"sysctls": {"kernel.hostname": "a"}}, "invalid propertyName 'kernel.hostname'"),
        ({"housekeeping_cpus": "abc"}, "at '/settings/housekeeping_cpus': 'abc' does not match"),
        ({"housekeeping_cpus": "0-1,3-2"}, '"3-2" is not a range of CPUs: expected first-last, below 8192'),
        ({"housekeeping_cpus": "8192"}, '"8192" is not a range of CPUs: expected first-last, below 8192'),
    ],
)
def test_settings_that_would_end_every_pod_at_its_start_are_refused(
    tuning: Chart, settings: Mapping[str, Any], message: str
) -> None:
    with pytest.raises(CallError) as raised:
        tuning.render({"settings": settings})
    assert message in str(raised.value)
    with pytest.raises(ValidationError):
        TunerSettings(**settings)


def test_the_values_of_the_docs_run_the_image_that_the_docs_build(tuning: Chart) -> None:
    (example,) = re.findall(r"```yaml\n(.*?)```", (DOCS / "node-tuning.md").read_text(), re.DOTALL)
    (pod,) = tuning.render(yaml.safe_load(example)).pods.values()
    (built,) = re.findall(r"-t (\S+/\$service:\S+) ", (DOCS / "images.md").read_text())
    assert pod.containers[0]["image"] == built.replace("$service", "node-tuner")


def test_no_variable_is_given_twice_or_unknown(tuning: Chart) -> None:
    names = [each["name"] for each in pod_of(tuning, "full").containers[0]["env"]]
    assert len(names) == len(set(names))
    assert {name.removeprefix(PREFIX).lower() for name in names} <= TunerSettings.model_fields.keys()


def test_the_chart_has_the_version_of_the_project() -> None:
    chart = yaml.safe_load((FOLDER / "Chart.yaml").read_text())
    assert f'\nversion = "{chart["appVersion"]}"\n' in (FOLDER.parents[2] / "pyproject.toml").read_text()
