"""The Tiltfile, evaluated as Starlark, with stubs of Tilt's built-ins that know its signatures and note each call."""

import functools
import re
import subprocess
from collections import defaultdict
from collections.abc import Iterator, Mapping
from inspect import Parameter, Signature
from typing import Any

import pytest
import starlark
import yaml

from bettong.services import SERVICES
from deploy.images.live import FOLDER, MARK
from examples.payments_load import payments, totals
from tests.images.containerfile import PATH, ROOT, stages
from tests.kubernetes.chart import HELM

Call = Mapping[str, Any]

# Parameters by Tilt's API reference, version 0.33; those before the bar must be given.
SIGNATURES = """\
allow_k8s_contexts: contexts |
docker_build: ref context | build_args dockerfile dockerfile_contents live_update match_in_env_vars ignore only \
    entrypoint target ssh network secret extra_tag container_args cache_from pull platform
fail: msg |
fall_back_on: files |
helm: pathToChartDir | name namespace values set kube_version skip_crds
k8s_context: |
k8s_resource: | workload new_name port_forwards extra_pod_selectors trigger_mode resource_deps objects auto_init \
    pod_readiness links labels discovery_strategy
k8s_yaml: yaml | allow_duplicates
local_resource: name cmd | deps trigger_mode resource_deps ignore auto_init serve_cmd cmd_bat serve_cmd_bat \
    allow_parallel links tags env serve_env readiness_probe dir serve_dir labels
port_forward: local_port | container_port name link_path host
run: cmd | trigger
sync: local_path remote_path |
"""


def signatures() -> Iterator[tuple[str, Signature]]:
    for line in SIGNATURES.splitlines():
        name, _, parameters = line.partition(":")
        must, _, may = parameters.partition("|")
        yield name, signature(must, may)


def signature(must: str, may: str) -> Signature:
    found = [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD) for name in must.split()]
    found += [Parameter(name, Parameter.POSITIONAL_OR_KEYWORD, default=None) for name in may.split()]
    return Signature(found)


class Tilt:
    """`calls` has the arguments of each call, by the built-in's name."""

    def __init__(self, context: str = "kind-trial", subcommand: str = "up", text: str = "") -> None:
        """Evaluates the Tiltfile, or another text. Raises StarlarkError for what Tilt would refuse."""
        self.calls: defaultdict[str, list[Call]] = defaultdict(list)
        self._context = context
        module = starlark.Module()
        for name, known in signatures():
            module.add_callable(name, functools.partial(self._note, name, known))
        module["TRIGGER_MODE_MANUAL"] = "manual"
        text = f"config = struct(tilt_subcommand = {subcommand!r})\n" + (
            text or (ROOT / "Tiltfile").read_text()
        )
        more = starlark.Globals.extended_by([starlark.LibraryExtension.StructType])
        starlark.eval(module, starlark.parse("Tiltfile", text, starlark.Dialect.standard()), more)

    def _note(self, built_in: str, known: Signature, /, *given: Any, **named: Any) -> Any:
        call = known.bind(*given, **named).arguments
        self.calls[built_in].append(call)
        if built_in == "fail":
            raise ValueError(call["msg"])
        return self._context if built_in == "k8s_context" else {built_in: call}

    def by(self, name: str, key: str) -> dict[str, Call]:
        """The calls of a built-in by one of their arguments."""
        return {call[key]: call for call in self.calls[name]}


@pytest.fixture(scope="module")
def tilt() -> Tilt:
    return Tilt()


@pytest.fixture(scope="module")
def objects(tilt: Tilt) -> list[dict[str, Any]]:
    """What Tilt would deploy: the chart rendered as the Tiltfile asks for it, without hooks."""
    (call,) = tilt.calls["helm"]
    assert tilt.calls["k8s_yaml"] == [{"yaml": {"helm": call}}]
    words = [str(HELM), "template", call["name"], call["pathToChartDir"]]
    words += [word for path in call["values"] for word in ("--values", path)]
    words += [word for value in call["set"] for word in ("--set", value)]
    words += ["--kube-version", call["kube_version"]]
    done = subprocess.run(words, cwd=ROOT, check=True, capture_output=True, text=True)
    found = [each for each in yaml.safe_load_all(done.stdout) if each]
    return [each for each in found if "helm.sh/hook" not in each["metadata"].get("annotations", {})]


def workloads(objects: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """The container of each workload, by its name."""
    kinds = {"Deployment", "StatefulSet", "DaemonSet"}
    found = [each for each in objects if each["kind"] in kinds]
    return {each["metadata"]["name"]: each["spec"]["template"]["spec"]["containers"][0] for each in found}


@pytest.mark.parametrize("text", ["docker_build('a')", "run('a', at = 'b')", "f'{1}'", "nothing()"])
def test_the_stubs_refuse_what_tilt_refuses(text: str) -> None:
    with pytest.raises(starlark.StarlarkError):
        Tilt(text=text)


@pytest.mark.parametrize("context", ["kind-kind", "k3d-trial", "minikube", "docker-desktop"])
def test_it_runs_on_a_cluster_of_this_machine(context: str) -> None:
    assert Tilt(context).calls["allow_k8s_contexts"] == [{"contexts": context}]


@pytest.mark.parametrize(
    "context", ["", "production", "minikube-of-all", "gke_kind-a", "arn:aws:eks:a:1:cluster/k3d-"]
)
def test_it_runs_on_no_other_cluster(context: str) -> None:
    with pytest.raises(starlark.StarlarkError, match="is not one of this machine"):
        Tilt(context)


def test_it_deploys_the_small_values_of_the_chart(tilt: Tilt) -> None:
    (call,) = tilt.calls["helm"]
    assert call["values"] == ["deploy/helm/bettong/values-dev.yaml"]


def test_every_image_that_the_chart_asks_for_of_us_is_built_and_no_other(
    tilt: Tilt, objects: list[dict[str, Any]]
) -> None:
    wanted = {container["image"].partition(":")[0] for container in workloads(objects).values()}
    assert {image for image in wanted if image.startswith("bettong/")} == set(tilt.by("docker_build", "ref"))
    assert set(tilt.by("docker_build", "ref")) == {f"bettong/{service}" for service in SERVICES}


def test_images_are_built_from_targets_that_there_are(tilt: Tilt) -> None:
    targets = stages(PATH.read_text())
    for ref, call in tilt.by("docker_build", "ref").items():
        assert (ROOT / call["context"] / call["dockerfile"]) == PATH
        assert call["target"] in targets
        assert call["build_args"] == {"SERVICE": ref.removeprefix("bettong/")}
        assert call["build_args"]["SERVICE"] in targets


def test_what_changes_is_put_where_the_running_image_looks(tilt: Tilt) -> None:
    for ref, call in tilt.by("docker_build", "ref").items():
        service = ref.removeprefix("bettong/")
        (first, *syncs, last) = call["live_update"]
        for path in first["fall_back_on"]["files"]:
            assert (ROOT / path).exists()
        moved = {step["sync"]["local_path"]: step["sync"]["remote_path"] for step in syncs}
        assert moved == {
            "src/bettong": f"{FOLDER}/bettong",
            f"services/{service}/bettong_{service}": f"{FOLDER}/bettong_{service}",
        }
        assert all((ROOT / path / "__init__.py").exists() for path in moved)
        assert last == {"run": {"cmd": f"touch {FOLDER}/{MARK}"}}


def test_ports_lead_to_workloads_that_have_them(tilt: Tilt, objects: list[dict[str, Any]]) -> None:
    resources = tilt.by("k8s_resource", "workload")
    containers = workloads(objects)
    assert resources.keys() == containers.keys()
    leads = {}
    for name, call in resources.items():
        assert set(call["resource_deps"]) <= resources.keys()
        for forward in (each["port_forward"] for each in call["port_forwards"]):
            assert forward["container_port"] in {port["containerPort"] for port in containers[name]["ports"]}
            leads[forward["local_port"]] = name
    assert leads == {
        **{each.grpc_port: f"bettong-{each.name}" for each in SERVICES.values() if each.grpc_port},
        4040: "bettong-driver",
        8080: "bettong-master",
    }


def test_buttons_are_targets_of_make_and_wait_to_be_pressed(tilt: Tilt) -> None:
    buttons = tilt.by("local_resource", "name")
    assert buttons.keys() == {"load", "tests", "lint"}
    targets = set(re.findall(r"^([a-z]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    for call in buttons.values():
        make, *words = call["cmd"]
        assert make == "make"
        assert {word for word in words if "=" not in word} <= targets
        assert call["trigger_mode"] == "manual"
        assert call["auto_init"] is False


def test_tilt_ci_sends_payments_through_what_it_deployed_and_presses_nothing_else() -> None:
    tilt = Tilt(subcommand="ci")
    buttons = tilt.by("local_resource", "name")
    assert {name for name, call in buttons.items() if call["auto_init"]} == {"load"}
    assert set(buttons["load"]["resource_deps"]) <= tilt.by("k8s_resource", "workload").keys()


def test_the_load_knows_its_totals() -> None:
    sent = payments("run", 7, 3)
    assert [payment.account for payment in sent[:4]] == ["run-0", "run-1", "run-2", "run-0"]
    assert totals(sent) == {"run-0": 9.0, "run-1": 5.0, "run-2": 7.0}


def test_the_chart_is_rendered_for_the_least_kubernetes_that_it_takes(tilt: Tilt) -> None:
    chart = yaml.safe_load((ROOT / tilt.calls["helm"][0]["pathToChartDir"] / "Chart.yaml").read_text())
    assert chart["kubeVersion"] == f">={tilt.calls['helm'][0]['kube_version']}-0"
