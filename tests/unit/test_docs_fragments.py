"""Code of docs that is a part of an application: it runs with what its page takes as given."""

import struct
from dataclasses import dataclass
from datetime import datetime, timedelta
from pathlib import Path
from typing import Annotated, Any

import numpy as np

import bettong
from bettong import Width
from bettong.schema.schema import schema_of
from tests.samples.page_code import blocks, run_block

DOCS = Path(__file__).resolve().parents[2] / "docs"
SOURCES = DOCS / "sources.md"
GIVEN: dict[str, Any] = {
    "bettong": bettong,
    "dataclass": dataclass,
    "timedelta": timedelta,
    "Annotated": Annotated,
}


@dataclass
class Order:
    side: bettong.u8
    number: bettong.u32
    client: Annotated[str, Width(6)]
    symbol: Annotated[str, Width(4)]
    quantity: float
    price: float
    time: Annotated[str, Width(21)]


@dataclass
class Attempt:
    card: str
    at: datetime


@dataclass
class Trade:
    cents: int
    quantity: int


@dataclass
class Model:
    seen: int = 0


def test_sources_of_a_topic_and_with_event_time_are_those_of_the_page() -> None:
    assert len(blocks(SOURCES, "python")) == 3
    app = bettong.Application("trades")
    run_block(SOURCES, 0, app=app, Order=Order, **GIVEN)
    run_block(SOURCES, 2, app=app, Attempt=Attempt, **GIVEN)
    assert [each.name for each in app.sources] == ["orders", "attempts"]


def test_the_decoder_of_tagged_messages_reads_both_kinds() -> None:
    found = run_block(SOURCES, 1, **GIVEN)
    schema = schema_of(found["Message"])
    rows = [struct.pack(">B4sddI", 1, b"IBM", 1.0, 2.0, 7), struct.pack(">B4sdd", 2, b"GE", 3.0, 4.0)]
    decoded = found["decoder"].decode(schema, [*rows, b"\x03"])
    assert decoded.columns[-1].tolist() == [7, 0]
    assert list(decoded.refused) == [2]


def test_a_function_over_columns_is_called_once_for_a_frame() -> None:
    (large,) = (
        value
        for name, value in run_block(DOCS / "speeds.md", 0, Trade=Trade, **GIVEN).items()
        if name == "large"
    )
    assert large(Trade(np.array([1, 1000]), np.array([1, 1000]))).tolist() == [False, True]  # type: ignore[arg-type]


def test_a_state_may_be_a_pickle() -> None:
    def train(trade: Trade, model: Model) -> Trade:
        model.seen += 1
        return trade

    app = bettong.Application("models")
    stream = app.source("trades", schema=Trade, key="cents")
    run_block(DOCS / "security.md", 0, stream=stream, train=train, Model=Model, **GIVEN)
    assert "train" in app.nodes
