"""The values of a new project, as the last step of the tutorial installs them."""

import re

import yaml

from bettong.cli.init import files
from tests.kubernetes.chart import ROOT, Chart, amount, pods_of

ASKED = re.compile(r"needs (\d+) CPUs and (\d+) GiB")


def test_a_new_project_with_two_workers_fits_the_cluster_that_the_page_asks_for(chart: Chart) -> None:
    found = ASKED.search((ROOT / "docs" / "kubernetes-start.md").read_text())
    assert found is not None
    values = yaml.safe_load(files("pay", "0.1.0")["values.yaml"])
    values["worker"]["replicas"] = 2
    requests = [
        container["resources"]["requests"]
        for each in chart.render(values).objects
        if each["kind"] in {"Deployment", "StatefulSet"}
        for pod in pods_of(each)
        for container in pod.spec["containers"] * each["spec"].get("replicas", 1)
    ]
    assert len(requests) == 8
    assert sum(amount(each["cpu"]) for each in requests) <= int(found[1])
    assert sum(amount(each["memory"]) for each in requests) <= int(found[2]) * 2**30
