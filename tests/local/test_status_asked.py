"""What flags of `bettong status` bring where numbers are missing: it says why, and claims nothing."""

import io
from dataclasses import replace

import pytest
from rich.console import Console

from bettong.cli.status import show
from bettong.inspection.deployment import DeploymentAnswers, Inspection, inspection
from tests.samples.watched_deployment import answers, inspected, without_measures


def asked_for(found: Inspection, **flags: bool) -> list[str]:
    """The lines that these flags bring."""
    without, text = io.StringIO(), io.StringIO()
    show(found, Console(width=200, file=without), each=False)
    show(found, Console(width=200, file=text), **{"each": False, **flags})
    usual = without.getvalue().splitlines()
    return [each for each in text.getvalue().splitlines() if each not in usual]


@pytest.mark.parametrize("asked", ["accounts", "computations", "latency", "watermarks", "queues"])
def test_while_redis_is_away_what_is_asked_for_is_left_out_and_nothing_is_claimed(asked: str) -> None:
    found = inspection("app", [], DeploymentAnswers(silent={"redis": "Redis at x does not answer"}))
    assert asked_for(found, **{asked: True}) == []


def test_what_is_not_measured_is_said_not_to_be() -> None:
    off = inspected(without_measures(answers(20)))
    why = "not measured (BETTONG_MEASURES=off)"
    assert asked_for(off, latency=True) == [f"parts of latencies are {why}"]
    assert asked_for(off, computations=True) == [f"times of computations are {why}"]
    assert asked_for(off, each=True)[-1] == f"hot keys are {why}"
    on = inspected(answers(20))
    for flag in ("latency", "computations", "each"):
        assert why not in "".join(asked_for(on, **{flag: True}))


def test_without_parts_of_the_latency_it_is_said_whether_anything_was_delivered() -> None:
    found = answers(20)
    record = {
        name: text for name, text in found.live["receiver"].items() if not name.startswith("latency_part")
    }
    idle = {name: text for name, text in record.items() if name not in {"latency_p50_ms", "latency_p99_ms"}}

    def said(receiver: dict[str, str]) -> list[str]:
        live = {**found.live, "receiver": {**receiver, "latency_part/spread/client-to-log": "{}"}}
        return asked_for(inspected(replace(found, live=live)), latency=True)

    assert said(idle) == ["nothing was delivered in the last 60 s"]
    (unknown,) = said(record)
    assert unknown.startswith("results of the last 60 s carry no parts of their latency: they are dead")
