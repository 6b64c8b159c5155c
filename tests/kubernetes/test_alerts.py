"""Alert rules: each fires when what it is for goes wrong, and only then, by thresholds of the values.

promtool plays half an hour of the series that the services' own endpoints serve.
"""

import json
import re
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.request import urlopen

import pytest
import yaml

from bettong.latency import BOUNDS_S
from bettong.local.redis_server import RedisServer
from tests.kubernetes.alert_cases import CASES, LENIENT, STEP_S, Course, courses, fires, trial
from tests.kubernetes.alert_rules import NAMES, SOURCE, each_rule, rules
from tests.kubernetes.chart import FOLDER, ROOT, Chart
from tests.samples.scraped_services import SERVICES, scraped_services
from tests.servers.prometheus import PromtoolError, promtool

THRESHOLDS: Mapping[str, float] = yaml.safe_load((FOLDER / "values.yaml").read_text())["alerts"]["thresholds"]
SCHEMA = json.loads((FOLDER / "values.schema.json").read_text())["properties"]["alerts"]["properties"]


@pytest.fixture(scope="module")
def good(redis_server: RedisServer) -> list[Course]:
    """The series of an application with which all is well."""
    found: list[Course] = []
    with scraped_services(redis_server.url, "alerts") as services:
        texts: dict[str, list[str]] = {service: [] for service in SERVICES}
        for step in (1, 2):
            services.report(step)
            for service, address in services.addresses.items():
                with urlopen(f"http://{address}/metrics") as answer:
                    texts[service].append(answer.read().decode())
    for service, (before, after) in texts.items():
        found += courses(service, before, after)
    return found


def tried(folder: Path, given: Any, tests: Sequence[Mapping[str, Any]]) -> str:
    """What promtool says of tests. Raises PromtoolError when one of them is not true."""
    (folder / "rules.yaml").write_text(yaml.safe_dump(given))
    path = folder / "tests.yaml"
    step = f"{STEP_S}s"
    path.write_text(
        yaml.safe_dump(
            {
                "rule_files": ["rules.yaml"],
                "evaluation_interval": step,
                "tests": [{"interval": step, **each} for each in tests],
            }
        )
    )
    return promtool("test", "rules", str(path))


@pytest.mark.prometheus
def test_each_alert_fires_when_what_it_is_for_goes_wrong_and_no_other(
    chart: Chart, good: list[Course], tmp_path: Path
) -> None:
    assert list(dict.fromkeys(each.alert for each in CASES)) == NAMES
    found = rules(chart)
    severities = {each["alert"]: each["labels"]["severity"] for each in each_rule(found)}
    all_is_well = {
        "name": "all is well",
        "input_series": [each.written() for each in good],
        "promql_expr_test": [fires(at, {}) for at in ("1m", "6m", "12m", "29m")],
    }
    assert "SUCCESS" in tried(
        tmp_path, found, [all_is_well, *(trial(case, good, severities) for case in CASES)]
    )


@pytest.mark.prometheus
def test_no_alert_fires_below_the_thresholds_of_the_values(
    chart: Chart, good: list[Course], tmp_path: Path
) -> None:
    assert LENIENT.keys() == THRESHOLDS.keys()
    found = rules(chart, {"thresholds": LENIENT})
    tests = [
        {
            "name": case.alert,
            "input_series": [each.written() for each in case.of(good)],
            "promql_expr_test": [fires(case.at, {})],
        }
        for case in {each.alert: each for each in reversed(CASES)}.values()  # the first of each alert
    ]
    assert "SUCCESS" in tried(tmp_path, found, tests)


@pytest.mark.prometheus
def test_a_case_that_is_not_true_fails(chart: Chart, good: list[Course], tmp_path: Path) -> None:
    untrue = replace(CASES[0], summary="No sender answers Prometheus")
    severities = dict.fromkeys(NAMES, "critical")
    with pytest.raises(PromtoolError, match="No processor answers Prometheus"):
        tried(tmp_path, rules(chart), [trial(untrue, good, severities)])


@pytest.mark.prometheus
def test_promtool_finds_nothing_to_say_of_the_rules(chart: Chart, tmp_path: Path) -> None:
    path = tmp_path / "rules.yaml"
    path.write_text(yaml.safe_dump(rules(chart)))
    assert f"{len(NAMES)} rules found" in promtool("check", "rules", "--lint=all", "--lint-fatal", str(path))


def test_each_threshold_is_in_a_rule_and_each_rule_has_one() -> None:
    used = [set(re.findall(r"\$\{(\w+)\}", str(each))) - {"release"} for each in SOURCE]
    assert all(used)
    assert set().union(*used) == (THRESHOLDS.keys() - {"bufferShare"}) | {"bufferBytes"}
    assert SCHEMA["thresholds"]["properties"].keys() == THRESHOLDS.keys()
    assert set(SCHEMA["thresholds"]["required"]) == THRESHOLDS.keys()


def test_the_senders_buffer_is_that_of_the_settings(chart: Chart) -> None:
    values = {"settings": {"sender_buffer_bytes_max": 1_000_000_000}}
    by_name = {each["alert"]: each["expr"] for each in each_rule(rules(chart, values=values))}
    assert by_name["BettongSenderFull"].endswith(" > 800000000")


def test_the_objective_of_latency_is_a_bound_that_there_is() -> None:
    assert SCHEMA["thresholds"]["properties"]["latencySeconds"]["enum"] == list(BOUNDS_S)


def test_alerts_that_are_not_wanted_are_left_out_by_name(chart: Chart) -> None:
    assert SCHEMA["without"]["items"]["enum"] == NAMES
    unwanted = {"BettongLateMessages", "BettongDeadLetters"}
    left = [each["alert"] for each in each_rule(rules(chart, {"without": sorted(unwanted)}))]
    assert left == [name for name in NAMES if name not in unwanted]


def test_a_page_says_of_each_alert_what_it_means_and_what_to_do() -> None:
    page = (ROOT / "docs" / "operations.md").read_text()
    section = page.split("\n## Alerts\n")[1].split("\n## ")[0]
    rows = [
        [cell.strip() for cell in line.split(" | ")] for line in section.splitlines() if "| `Bettong" in line
    ]
    assert [row[0] for row in rows] == [
        f"| `{each['alert']}`, {each['labels']['severity']}" for each in SOURCE
    ]
    assert all(len(row) == 3 and all(row) for row in rows)
