"""A reference table that Spark reads from a file, on the whole suite: loaded, loaded again, and not to be loaded."""

import json
from pathlib import Path

import pytest

from bettong import metrics
from bettong.cli.status_texts import summary
from bettong.client.sender import Sender
from bettong.config.processor import Schedule
from bettong.inspection.overview import overview
from tests.e2e.conftest import RunningSuite, StartSuite
from tests.waiting import eventually

APPLICATION = """
from dataclasses import dataclass
from datetime import timedelta
import bettong

@dataclass
class Order:
    number: int
    sku: str

@dataclass
class Price:
    sku: str
    cents: int

@dataclass
class Priced:
    number: int
    cents: int

def prices(spark):
    return spark.read.csv({prices!r}, header=True, schema="cents bigint, sku string, note string")

def priced(order: Order, price: Price | None) -> Priced:
    return Priced(order.number, -1 if price is None else price.cents)

app = bettong.Application("shop")
orders = app.source("orders", schema=Order)
every = timedelta(seconds=1)
orders.join_reference(prices, priced, key="sku", reload_every=every, how="left").sink("out")
"""


@pytest.mark.timeout(600)
@pytest.mark.parametrize("schedule", Schedule)
def test_a_table_is_loaded_again_and_one_that_cannot_be_stays(
    schedule: Schedule, start_suite: StartSuite, tmp_path: Path
) -> None:
    file, application = tmp_path / "prices.csv", tmp_path / "shop.py"
    application.write_text(APPLICATION.format(prices=str(file)))
    running = start_suite(str(application), schedule=schedule, settings={"spark_master": "local[2]"})
    eventually(
        lambda: "'priced': load() failed: " in waits_for(running), seconds=60, what="it says why it waits"
    )
    write(file, {"a": 1, "b": 2})
    numbers = Numbers(running)
    assert numbers.cents_of("abc") == [1, 2, -1]
    write(file, {"b": 3, "c": 4})
    eventually(lambda: numbers.cents_of("b") == [3], seconds=60, what="the new table is seen")
    assert numbers.cents_of("abc") == [-1, 3, 4]
    file.unlink()
    said = "[red]reference tables are out of date[/red]: priced: not loaded again since"
    lines = eventually(lambda: status(running, said), seconds=60, what="status says so")
    # Either when Spark looks for the file, or, where it went after that, when Spark reads it.
    assert "load() failed: " in lines[0] or "what load() returned cannot be read: " in lines[0]
    assert "prices.csv" in lines[0]
    assert "\n" not in lines[0]
    assert numbers.cents_of("abc") == [-1, 3, 4]
    write(file, {"a": 5, "b": 5, "c": 5})
    eventually(lambda: numbers.cents_of("b") == [5], seconds=60, what="it is mended")
    eventually(lambda: not status(running, said), seconds=60, what="status says nothing")
    assert numbers.cents_of("abc") == [5, 5, 5]


def waits_for(running: RunningSuite) -> str:
    """What keeps the processor from folding, by its own word."""
    record = running.metrics.live().get("processor", {})
    return record.get(metrics.DETAIL.name, "") if record.get(metrics.STATE.name) == "waiting" else ""


def write(file: Path, prices: dict[str, int]) -> None:
    draft = file.with_suffix(".draft")
    draft.write_text("\n".join(["cents,sku,note", *(f"{cents},{sku},none" for sku, cents in prices.items())]))
    draft.rename(file)


def status(running: RunningSuite, said: str) -> list[str]:
    found = overview(running.metrics.live(), running.metrics.partitions())
    return [line for line in summary(found) if line.startswith(said)]


class Numbers:
    """Sends orders, each of its own number, and finds what came of them."""

    def __init__(self, running: RunningSuite) -> None:
        self._running = running
        self._sent = 0

    def cents_of(self, skus: str) -> list[int]:
        """What orders of these cost now."""
        first = self._sent
        self._sent += len(skus)
        wanted = range(first, self._sent)
        with Sender(self._running.sender, "orders") as sender:
            sender.send_columns({"number": list(wanted), "sku": list(skus)})
            sender.flush(60)
        eventually(lambda: len(self._found(wanted)) == len(wanted), seconds=60, what="results")
        found = self._found(wanted)
        return [found[number] for number in wanted]

    def _found(self, wanted: range) -> dict[int, int]:
        rows = map(json.loads, self._running.all_bytes_of("out").splitlines())
        return {row["number"]: row["cents"] for row in rows if row["number"] in wanted}
