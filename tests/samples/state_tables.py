"""Tables of states, objects and records, and what a Calling does with them: for tests of both."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from datetime import timedelta
from typing import Annotated, Any
from unittest.mock import patch

import numpy as np
import pytest

from bettong import Application, Width
from bettong.application.plan import StageInput
from bettong.frames.columns import Columns
from bettong.schema.schema import schema_of
from bettong.worker.batch import Batch
from bettong.worker.state import objects as object_module
from bettong.worker.state import records as record_module
from bettong.worker.state.objects import ObjectTable
from bettong.worker.state.records import RecordTable
from bettong.worker.state.table import SavedStates, StateTable

TTL_NS = 1000
FIRST = 7


@dataclass
class Item:
    key: Annotated[str, Width(6)]


@dataclass
class Kept:
    total: int = FIRST


def use(item: Item, kept: Kept) -> Item:
    return item


SCHEMA = schema_of(Item)
Make = Callable[[timedelta | None], StateTable]


def node(ttl: timedelta | None) -> Any:
    return (
        Application("app")
        .source("in", schema=Item, key="key")
        .stateful(use, state=Kept, name="fold", ttl=ttl, delete_when=never)
        .node
    )


def never(kept: Kept) -> bool:
    return False


def objects(ttl: timedelta | None) -> StateTable:
    return ObjectTable(node(ttl))


def records(ttl: timedelta | None) -> StateTable:
    return RecordTable(node(ttl), np.dtype("S6"))


def batch(keys: list[int]) -> Batch:
    columns = Columns.of_messages(SCHEMA, [Item(f"k{key}") for key in keys])
    return Batch.of_frame(StageInput("in", SCHEMA, "key"), columns)


def add(table: StateTable, keys: list[int]) -> None:
    """Adds one to the total of each key, as a function would in the order of the rows."""
    rows = batch(keys)
    opened = table.open(rows)
    for row, key in enumerate(rows.key_values()):
        if isinstance(opened, ObjectTable):
            (opened.get(key) or opened.create(key)).total += 1
        else:
            opened.states["total"][opened.slots[row]] += 1


def delete(table: StateTable, keys: list[int]) -> None:
    """Deletes the states of those keys that have one, as a Calling does."""
    if isinstance(table, ObjectTable):
        rows = batch(keys)
        for key in {f"k{key}" for key in keys}:
            if table.get(key) is not None:
                table.delete(key, rows, rows.key_values().index(key))
    elif isinstance(table, RecordTable):
        slots = table._table.find(batch(keys).key_column())
        known = slots[slots >= 0]
        table.delete(batch(keys), known, np.arange(len(known)))


def totals(table: StateTable) -> dict[str, int]:
    found = {key.decode() if isinstance(key, bytes) else str(key): state for key, state in table.items()}
    assert all(table.state_of(key) == state for key, state in found.items())
    assert table.keys == len(found)
    return {key: state["total"] for key, state in found.items()}


def loaded(make: Make, increments: list[tuple[SavedStates, bool]], *, log_ns: int = 0) -> StateTable:
    table = make(None)
    for saved, begins in increments:
        table.load(saved, log_ns=log_ns, begins=begins)
    return table


@contextmanager
def small_increments() -> Iterator[None]:
    """So that a round of writing every key takes several of them."""
    with ExitStack() as patches:
        for module in (object_module, record_module):
            patches.enter_context(patch.multiple(module, INCREMENT_KEYS=2, WHOLE_FROM=1))
        yield


both = pytest.mark.parametrize("make", [objects, records])
