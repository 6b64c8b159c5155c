"""Harnesses of the states inside a snapshot: objects by the state codec; records, panes, kept messages as arrays."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Annotated, Any

import msgpack  # type: ignore[import-untyped]
import numpy as np

import bettong
from bettong import Application, AtMost, Width
from bettong.application.joins.joined import Joined
from bettong.application.nodes.stateful import Stateful
from bettong.application.windows.windowed import Windowed
from bettong.errors import SnapshotError, StateChangedError
from bettong.schema.fields import Kind
from bettong.worker.joins.column_joins import column_table
from bettong.worker.state.classes import Classes
from bettong.worker.state.codec import MARK, VERSION
from bettong.worker.state.join_table import JoinTable
from bettong.worker.state.latest_table import KEPT
from bettong.worker.state.pane_table import PaneTable
from bettong.worker.state.reading import decode
from bettong.worker.state.records import RecordTable
from bettong.worker.state.stored_arrays import bytes_of
from bettong.worker.state.table import SavedStates
from bettong.worker.windows.compiled_kinds import pane_table_of
from tests.fuzz.harness import Harness
from tests.samples.state_tables import batch, records
from tests.samples.states import Colour, Frozen, Kept, Point, fold, written

_NOT_WRITTEN = (
    StateChangedError,
    TypeError,
    ValueError,
    OverflowError,
    LookupError,
    msgpack.exceptions.UnpackException,
)
_SHOWN = 20


@dataclass
class Visit:
    """What windows are made of."""

    page: Annotated[str, Width(8)]
    at: int


@dataclass
class PerPage:
    """And what comes of them."""

    key: Annotated[str, Width(8)]
    visits: int


@cache
def _classes() -> Classes:
    return Classes(fold()._node)


@cache
def _windows() -> Windowed:
    counted = bettong.compiled(bettong.aggregate(PerPage, visits=bettong.Count()))
    app = Application("fuzzed")
    visits = app.source("visits", schema=Visit, key="page", event_time="at")
    node = visits.window(bettong.tumbling(timedelta(seconds=1)), counted, name="per-page").node
    assert isinstance(node, Windowed)
    return node


def _panes() -> PaneTable:
    return pane_table_of(_windows(), Kind.TEXT, np.dtype("S8"), None)


@bettong.compiled
def _both(visit: Visit, other: Visit) -> Visit:
    return Visit(visit.page, other.at)


@cache
def _join() -> Joined:
    visits = Application("fuzzed").source("visits", schema=Visit, key="page", event_time="at")
    return visits.join_within(visits, timedelta(0), timedelta(seconds=1), _both, name="pairs").join_node


def _kept() -> RecordTable:
    return JoinTable(_join(), (Kind.TEXT, np.dtype("S8"), None), _join().sides)


def _versions() -> RecordTable:
    visits = Application("fuzzed").source("visits", schema=Visit, key="page", event_time="at")
    node = visits.join_as_of(visits, _both, name="pairs").join_node
    return column_table(node, (Kind.TEXT, np.dtype("S8"), None))


def _newest() -> RecordTable:
    visits = Application("fuzzed").source("visits", schema=Visit, key="page", event_time="at")
    node = visits.join_latest(visits, _both, name="pairs").join_node
    return column_table(node, (Kind.TEXT, np.dtype("S8"), None))


def _in_windows() -> RecordTable:
    visits = Application("fuzzed").source("visits", schema=Visit, key="page", event_time="at")
    window = bettong.sliding(timedelta(seconds=2), timedelta(seconds=1))
    node = visits.join_window(visits, window, _both, name="pairs").join_node
    return column_table(node, (Kind.TEXT, np.dtype("S8"), None))


def _records() -> Any:
    return records(None)


@dataclass
class _Page:
    """A state that nests."""

    first: Visit = dataclass_field(default_factory=lambda: Visit("", 0))
    times: Annotated[list[int], AtMost(4)] = dataclass_field(default_factory=lambda: [1, 2])
    counts: Any = dataclass_field(default_factory=lambda: np.zeros(3))


_Page.__annotations__["counts"] = np.ndarray


@bettong.compiled
def _see(visit: Visit, page: _Page) -> Visit:
    page.times.append(visit.at)
    return visit


@cache
def _fold() -> Stateful:
    visits = Application("fuzzed").source("visits", schema=Visit, key="page")
    node = visits.stateful(_see, state=_Page, name="pages").node
    assert isinstance(node, Stateful)
    return node


def _nested() -> RecordTable:
    return RecordTable(_fold(), np.dtype(np.int64), Kind.INT)


def read_states(data: bytes) -> None:
    """Keys and states, as they are and behind the right mark."""
    for each in (data, MARK + bytes([VERSION]) + data):
        for old in (False, True):
            with contextlib.suppress(*_NOT_WRITTEN):
                decode(each, _classes(), old=old)


def read_arrays(data: bytes) -> None:
    """Records, panes and kept messages, with their keys; and the keys of those that have ended."""
    good = _records().dump()
    for made in (_records, _nested, _panes, _kept, _versions, _newest, _in_windows):
        for saved in (SavedStates(data), SavedStates(good.states, ended=data)):
            table = made()
            with contextlib.suppress(SnapshotError):
                table.load(saved, log_ns=0, begins=True)
                for _, _state in zip(range(_SHOWN), table.items(), strict=False):
                    pass
                table.load(saved, log_ns=0, begins=False)
                table.dump()
                table.increment(begins=True)


def _states() -> Iterator[bytes]:
    yield written(Kept(1), Kept(2, {"a": [1, 2.5, None, True], "b": (1, "x")}))
    yield written(Frozen({1, 2}), Point(1, 2), Colour.RED)
    yield written(datetime(2026, 1, 2, tzinfo=UTC), Decimal("1.5"), 2**70, b"bytes", [[1], {2: 3}])


def _arrays() -> Iterator[bytes]:
    table = _records()
    yield table.dump().states
    table.open(batch([1, 2, 3]))
    yield table.dump().states
    table = _nested()
    table.open(batch([1, 2, 3]))
    yield table.dump().states
    table = _panes()
    keys = np.array([[1], [2]], np.uint64)
    states = np.array([(5, 0, 2), (7, 2, 1)], table.states.dtype)
    panes = np.arange(3 * _pane_words(), dtype=np.int64).reshape(3, _pane_words())
    yield bytes_of(keys, states, panes)
    counts, items = np.array([[2, 0], [1, 1], [0, 1]]), np.arange(1, 10).reshape(3, 3)
    yield bytes_of(keys, states, panes, counts, items, items[:2])
    states = np.zeros(2, _kept().states.dtype)
    states["left_kept"], states["right_kept"] = (2, 0), (0, 1)
    entries, pages = np.arange(6).reshape(3, 2), np.array([b"a", b"b", b"c"], "S8")
    sides = [each[part] for part in (slice(2), slice(2, 3)) for each in (entries, pages, np.arange(3))]
    yield bytes_of(keys, states, *sides)
    states = np.zeros(2, _newest().states.dtype)
    states["held"], states["value"]["page"] = KEPT, [b"a", b"b"]
    yield bytes_of(keys, states)
    yield bytes_of(keys)


def _pane_words() -> int:
    return len(_panes().panes.saved)


HARNESSES = (
    Harness(
        "states", read_states, _states, (b"\xdc\xff\xff", b"\xdd\xff\xff\xff\xff", b"\xc6\x7f\xff\xff\xff")
    ),
    Harness(
        "state-arrays",
        read_arrays,
        _arrays,
        (b"\x93NUMPY\x01\x00", b"(1152921504606846976,)", b"'|O'", b"'|V0'", b"True", b"-", b"((((", b"not "),
    ),
)
