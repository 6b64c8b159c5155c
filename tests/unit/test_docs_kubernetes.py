"""What the pages on Kubernetes tell to type: values render, files are there, commands have the flags that are shown."""

import re
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
import yaml

from bettong.application.plan import plan
from bettong.edges.application_file import load
from bettong.testing import run
from tests.kubernetes.chart import DEV, FOLDER, ROOT, TUNING, Chart
from tests.kubernetes.value_sets import merged
from tests.samples.example_files import messages_of, shown_lines
from tests.samples.page_commands import check_command, lines, of_bettong

DOCS = ROOT / "docs"
PAGES = [
    DOCS / f"{name}.md" for name in ("kubernetes-start", "kubernetes-pinning", "kubernetes", "node-tuning")
]
START, PINNING = DOCS / "kubernetes-start.md", DOCS / "kubernetes-pinning.md"
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
LINK = re.compile(r"\]\((?!https?:)([^)#]*)(?:#([^)]*))?\)")
CODE = re.compile(r"`[^`\n]*`")
FILES_OF = {"-f", "--config", "--system-config-from-file"}
# Of `kubeletConfig`, by gcloud's reference of --system-config-from-file.
GKE_TAKES = {
    "allowedUnsafeSysctls",
    "containerLogMaxFiles",
    "containerLogMaxSize",
    "cpuCFSQuota",
    "cpuCFSQuotaPeriod",
    "cpuManagerPolicy",
    "imageGcHighThresholdPercent",
    "imageGcLowThresholdPercent",
    "imageMaximumGcAge",
    "imageMinimumGcAge",
    "memoryManager",
    "podPidsLimit",
    "singleProcessOomKill",
    "topologyManager",
}


@dataclass(frozen=True)
class Shown:
    """A YAML block. `title`: what its first line calls it, a file most often."""

    page: Path
    title: str
    content: dict[str, Any]

    def __str__(self) -> str:
        return f"{self.page.stem}:{Path(self.title).name}"


def blocks(page: Path, *languages: str) -> list[str]:
    return [found[2] for found in BLOCK.finditer(page.read_text()) if found[1] in languages]


def shown() -> Iterator[Shown]:
    for page in PAGES:
        for text in blocks(page, "yaml"):
            first = text.splitlines()[0]
            assert first.startswith("# "), (
                f"{page.name}: a block of YAML without a name in its first line: {first}"
            )
            yield Shown(page, first.removeprefix("# "), yaml.safe_load(text))


def titled(title: str) -> list[Shown]:
    return [each for each in SHOWN if Path(each.title).name == title]


SHOWN = list(shown())


COMMANDS = [(page.stem, words) for page in [*PAGES, DOCS / "operations.md"] for words in of_bettong(page)]


@pytest.mark.parametrize("values", titled("values.yaml"), ids=str)
def test_values_for_real_are_taken_by_the_chart(values: Shown) -> None:
    rendered = Chart().render(values.content)
    assert {pod.qos for pod in rendered.pods.values()} == {"Guaranteed"}
    images = {each["image"] for pod in rendered.pods.values() for each in pod.containers}
    assert images == {f"my/totals/{service}:1" for service in ("sender", "receiver", "processor")}


@pytest.mark.parametrize("over", ["dev", "real"])
@pytest.mark.parametrize("smt", [1, 2])
def test_pinned_values_are_taken_over_those_for_trying_out_and_those_for_real(over: str, smt: int) -> None:
    (pinned,) = (each for each in titled("pinned.yaml") if each.content["qos"].get("smtMultiple", 1) == smt)
    (real,) = titled("values.yaml")
    values = pinned.content if over == "dev" else merged(real.content, pinned.content)
    rendered = Chart().render(values, dev=over == "dev")
    assert {pod.qos for pod in rendered.pods.values()} == {"Guaranteed"}
    on_kept_nodes = [owner for owner, pod in rendered.pods.items() if pod.spec.get("nodeSelector")]
    assert on_kept_nodes == ["StatefulSet/trial-bettong-worker"]


@pytest.mark.parametrize("values", titled("tuning.yaml"), ids=str)
@pytest.mark.parametrize("mode", ["dry-run", "apply"])
def test_values_of_the_node_tuning_are_taken_by_its_chart(values: Shown, mode: str) -> None:
    assert Chart(TUNING).render({**values.content, "mode": mode}).of("DaemonSet")


def kubelets(content: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """The configurations of a kubelet that a block holds, in texts within it too."""
    if content.get("kind") == "KubeletConfiguration":
        yield content
    elif content.get("kind") == "NodeConfig":
        yield content["spec"]["kubelet"]["config"]
    elif "kubeletConfig" in content:
        yield content["kubeletConfig"]
    for text in [
        *content.get("kubeadmConfigPatches", []),
        *(group["overrideBootstrapCommand"] for group in content.get("nodeGroups", [])),
    ]:
        yield from kubelets(yaml.safe_load(text))


def test_every_distribution_gets_a_static_cpu_manager_with_what_it_takes() -> None:
    found = {each.title: list(kubelets(each.content)) for each in SHOWN if each.page == PINNING}
    configured = {title: each[0] for title, each in found.items() if each}
    assert {Path(title).name for title in configured} == {
        "kind.yaml",
        "50-pinning.conf",
        "pinned-nodes.yaml",
        "node-system.yaml",
        "KubeletConfiguration",
    }
    assert {kubelet["cpuManagerPolicy"] for kubelet in configured.values()} == {"static"}
    assert all(each.content["kubeletConfig"].keys() <= GKE_TAKES for each in titled("node-system.yaml"))
    # nodeadm sets reserved cgroups, beside which the kubelet refuses reservedSystemCPUs.
    assert "reservedSystemCPUs" not in configured["pinned-nodes.yaml"]


def test_nodes_get_the_label_and_the_taint_that_the_chart_asks_for() -> None:
    pin = yaml.safe_load((FOLDER / "values.yaml").read_text())["qos"]["pin"]
    ((key, value),) = pin["nodeSelector"].items()
    assert [each["key"] for each in pin["tolerations"]] == [key]
    text = PINNING.read_text()
    sections = {part.splitlines()[0]: part for part in text.split("\n## 2.")[0].split("\n### ")[1:]}
    assert list(sections) == ["kind", "k3s", "EKS", "GKE", "kubeadm and others"]
    for name, section in sections.items():
        assert f"{key}={value}" in section or f"{key}: {value}" in section, name
        assert name == "kind" or f"{key}={value}:NoSchedule" in section or f"key: {key}" in section, name


@pytest.mark.parametrize(
    ("page", "words"), COMMANDS, ids=lambda each: each if isinstance(each, str) else each[0]
)
def test_a_command_of_bettong_has_the_flags_that_are_shown(page: str, words: list[str]) -> None:
    check_command(words)


def test_commands_are_shown_for_a_message_and_its_result() -> None:
    assert {words[0] for page, words in COMMANDS if page == "kubernetes-start"} == {"send", "tail", "k8s"}


def test_each_send_of_the_start_page_adds_messages_and_each_tail_finds_as_many_results(
    tmp_path: Path,
) -> None:
    (tmp_path / "app.py").write_text(yaml.safe_load(DEV.read_text())["application"]["source"])
    app, sent, inputs = load(str(tmp_path / "app.py")), set[str](), list[Any]()
    sources = {each.name: each for each in plan(app).sources}
    (message,) = (words[1] for words in lines(START) if words[:1] == ["echo"])
    (tmp_path / "payments.jsonl").write_text(message + "\n")
    for words in of_bettong(START):
        if words[0] == "send":
            source, path = words[1], tmp_path / Path(words[2]).name
            assert path.name not in sent or "--again" in words, "a file that was sent before adds nothing"
            sent.add(path.name)
            inputs.append((source, messages_of(sources[source], path)))
        elif words[0] == "tail":
            count = int(words[words.index("--count") + 1])
            assert count <= len(run(app, inputs).outputs[words[1]]), "it would wait for ever"
    shown = re.findall(r'`(\{"account".*?\})`', START.read_text())
    assert len(shown) == 2
    assert shown == list(shown_lines(app, "totals", run(app, inputs).outputs["totals"][:2]))


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_files_that_commands_read_are_in_the_tree_or_on_a_page(page: Path) -> None:
    made = {each.title for each in SHOWN if each.page == page}
    for words in lines(page):
        named = [word for word in words if word.startswith("deploy/")]
        named += [word for before, word in pairwise(words) if before in FILES_OF]
        named = [word for word in named if "." in word or "/" in word]
        assert [name for name in named if name not in made and not (ROOT / name).exists()] == []


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.stem)
def test_links_lead_to_a_page_and_a_heading(page: Path) -> None:
    for target, anchor in LINK.findall(CODE.sub("", page.read_text())):
        linked = (page.parent / target).resolve() if target else page
        assert linked.exists(), f"{page.name}: {target}"
        headings = re.findall(r"^#+ (.*)$", linked.read_text(), re.MULTILINE) if anchor else []
        slugs = {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}
        assert not anchor or anchor in slugs, f"{page.name}: {target}#{anchor}"
