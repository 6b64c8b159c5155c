"""The form of `bettong status --json`: what it holds is what its page and its schema say; what is unknown is null."""

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from bettong.hot_keys import HotKey, HotKeys
from bettong.identifiers import PartitionId
from bettong.inspection.deployment import DeploymentAnswers, Inspection
from bettong.inspection.status_form import PARTS, VERSION, StatusForm, status_form
from bettong.latency_parts import PARTS as LATENCY_PARTS
from bettong.queue_metrics import CLIENTS, DECODING, SUBSCRIBERS
from bettong.queued import ClientCredits, SubscriberQueue, clients_text, subscribers_text
from tests.samples.watched_deployment import BEGUN_S, answers, inspected, without_measures

DOCS = Path(__file__).parents[2] / "docs"
SCHEMA = json.loads((DOCS / "status.schema.json").read_text())
NUMBERS = {
    "bytes",
    "messages",
    "records",
    "frames",
    "keys",
    "ms",
    "s",
    "offset",
    "number",
    "messages/s",
    "partitions",
    "restarts",
    "origins",
    "0 to 1",
    "cores",
    "us",
}
AWAY = inspected(DeploymentAnswers(silent={"redis": "Redis at x does not answer"}, logs=answers(0).logs))
WITHOUT_KAFKA = inspected(replace(answers(20), logs=None, silent={"kafka": "Kafka at x does not answer"}))
DEAD = inspected(replace(answers(20), live={}))


def printed(found: Inspection | None) -> dict[str, Any]:
    text = status_form(found, BEGUN_S, "nothing runs here").model_dump_json(indent=2)
    values: dict[str, Any] = json.loads(text, parse_constant=lambda name: pytest.fail(f"{name} is no JSON"))
    return values


def with_queues(found: DeploymentAnswers) -> DeploymentAnswers:
    """The same, had a client and a subscriber been there."""
    sender = {
        CLIENTS.name: clients_text([ClientCredits("orders/feed-7", 0, 64, 1.5)]),
        f"{DECODING.name}/orders": "3",
    }
    receiver = {SUBSCRIBERS.name: subscribers_text([SubscriberQueue("spread", "ipv4:10.0.0.7:5", 0.0, 0, 7)])}
    live = {
        name: {**record, **({"sender": sender, "receiver": receiver}.get(name, {}))}
        for name, record in found.live.items()
    }
    return replace(found, live=live)


def described() -> dict[str, list[tuple[str, str]]]:
    """Of the page: section, and the name and unit of each field."""
    sections = re.split(r"^## ", (DOCS / "status-json.md").read_text(), flags=re.MULTILINE)[1:]
    return {
        section.partition("\n")[0]: re.findall(r"^\| `(\w+)` \| ([^|]+) \|", section, re.MULTILINE)
        for section in sections
    }


@pytest.mark.parametrize(
    "found",
    [inspected(answers(20)), inspected(with_queues(answers(20))), AWAY, WITHOUT_KAFKA, DEAD, None],
    ids=["all is well", "with queues", "without Redis", "without Kafka", "all services dead", "nothing runs"],
)
def test_what_is_printed_is_of_the_schema(found: Inspection | None) -> None:
    jsonschema.Draft202012Validator.check_schema(SCHEMA)
    jsonschema.validate(printed(found), SCHEMA)
    assert StatusForm.model_validate(printed(found)) == status_form(found, BEGUN_S, "nothing runs here")


def test_the_page_lists_each_field_that_is_printed_and_no_other() -> None:
    values = printed(inspected(with_queues(answers(20))))
    lists = (values[name][0] for name in ("stages", "partitions"))
    partition, sink = values["partitions"][0], values["sinks"][0]
    within = (partition["snapshot"], partition["hot_keys"][0], sink)
    names = ("computations", "input_watermarks", "open_windows", "queues", "clients", "subscribers")
    first = (values[name][0] for name in names)
    parts = (values, values["services"][0], values["total"], *lists, *within, sink["parts"][0], *first)
    page = described()
    assert len(page) == len(parts)
    for part, fields in zip(parts, page.values(), strict=True):
        assert [name for name, _ in fields] == list(part)


def test_each_number_has_a_unit() -> None:
    for fields, part in zip(described().values(), PARTS, strict=True):
        for name, unit in fields:
            kind = str(part.model_fields[name].annotation)
            if re.search(r"\b(int|float)\b", kind):
                assert unit.strip() in NUMBERS | {"Unix s", "Unix ns"}, f"{part.__name__}.{name}"


def test_the_numbers_are_those_of_the_inspection() -> None:
    found = inspected(answers(20))
    values = printed(found)
    assert (values["version"], values["application"], values["goes_on"]) == (VERSION, "market-spread", True)
    assert values["total"]["messages_in"] == found.overview.messages > 0
    assert values["total"]["latency_p99_ms"] == 8.62
    (held,) = (each for each in values["partitions"] if (each["stage"], each["partition"]) == ("spreads", 2))
    assert (held["lag_records"], held["slot"], held["watermark_held_by"]) == (496, 0, "spreads/orders/3")
    assert held["hot_keys"] == [{"key": "SYM2", "share": 0.22, "share_least": 0.2}]
    assert values["skews"] == []
    [sink] = values["sinks"]
    assert (sink["sink"], sink["messages"], round(sink["latency_mean_ms"], 6)) == ("spread", 336_000, 2.5)
    assert [each["part"] for each in sink["parts"]] == list(LATENCY_PARTS)
    assert sum(each["mean_ms"] for each in sink["parts"]) == pytest.approx(sink["latency_mean_ms"])
    assert sink["parts"][1]["share"] == pytest.approx(0.5)
    assert [each["p99_ms"] for each in sink["parts"]] == [1.1, 5.2, 0.4, 3.1, 0.2]
    stage = next(each for each in values["stages"] if each["stage"] == "spreads")
    assert (stage["lag_records"], stage["late"], stage["partitions"]) == (496, 48, 4)


def test_what_is_not_measured_is_named_so_that_an_empty_list_is_no_claim() -> None:
    values = printed(inspected(without_measures(answers(20))))
    assert values["not_measured"] == ["parts of latencies", "times of computations", "hot keys"]
    assert (values["sinks"], values["computations"]) == ([], [])
    assert printed(inspected(answers(20)))["not_measured"] == []


def test_a_key_that_is_too_much_for_a_partition_is_named_with_what_to_do() -> None:
    found = answers(20)
    hot = HotKeys(65_536, (HotKey("ACME", 0.9, 0.8),)).to_text()
    loaded = {**found.partitions[PartitionId("orders", 1)], "hot_keys": hot, "messages_per_s": "90000"}
    of = inspected(replace(found, partitions={**found.partitions, PartitionId("orders", 1): loaded}))
    (text,) = printed(of)["skews"]
    assert text.startswith("orders/1: key 'ACME' has 73% of the messages of its stage")
    assert printed(of)["goes_on"], "it is no alarm"


def test_what_nobody_knows_is_null() -> None:
    assert printed(AWAY)["total"] is None
    assert printed(AWAY)["partitions"] == []
    without = printed(WITHOUT_KAFKA)
    assert (without["total"]["lag_records"], without["partitions"][0]["lag_records"]) == (None, None)
    assert without["unknown"] == ["Kafka at x does not answer; its data is left out"]
    dead = next(each for each in printed(DEAD)["partitions"] if each["lag_records"])
    assert (dead["is_folded"], dead["stalled_s"], dead["stands_still"]) == (False, None, True)
    assert (dead["messages_per_s"], dead["latency_p99_ms"], dead["hot_keys"]) == (None, None, []), (
        "these were of a fold that has ended"
    )
    nothing = printed(None)
    assert (nothing["application"], nothing["goes_on"], nothing["unknown"]) == (
        None,
        False,
        ["nothing runs here"],
    )


def test_garbage_in_live_records_is_no_number() -> None:
    found = answers(20)
    garbage = dict.fromkeys([*found.live["receiver"], "ttl_s", "age_s"], "\x1b[31mé")
    live = {**found.live, "receiver": {**garbage, "service": "receiver"}, "\x1b[2J": {"state": "nan"}}
    first, second, *_ = found.partitions
    partitions = {
        **found.partitions,
        first: dict.fromkeys(found.partitions[first], "x"),
        second: dict.fromkeys(found.partitions[second], "inf"),
    }
    values = printed(inspected(replace(found, live=live, partitions=partitions)))
    jsonschema.validate(values, SCHEMA)
    assert values["sinks"] == []
    assert values["partitions"][0]["hot_keys"] == []
    assert values["total"]["lag_records"] is None
    assert [each["messages"] for each in values["partitions"][:2]] == [0, 0]
    assert values["partitions"][2]["messages"] > 0
