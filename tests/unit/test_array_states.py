"""States that are, or hold, arrays of numpy: kept to the last bit, shown, and refused where they cannot be kept."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import array_shapes, arrays, scalar_dtypes
from numpy.typing import NDArray

import bettong
from bettong import Application, ApplicationError
from bettong.application.plan import plan
from bettong.errors import StateChangedError
from bettong.inspection.json_lines import event_json
from bettong.inspection.key_history import KeyHistory
from bettong.inspection.live.state_files import export
from bettong.inspection.states import KeyState
from bettong.testing import CRASH, RESTORE, AppSession, check, run
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import program
from bettong.worker.state.parts import MAKERS, PARTS
from tests.samples.worker import FRAME_BYTES_MAX, data, fold, worker

ARRAY = PARTS[np.ndarray]


@dataclass
class Sample:
    sensor: bettong.u32
    slot: int
    value: float


@dataclass
class Average:
    sensor: bettong.u32
    value: float


@dataclass
class Day:
    """What an hour of the day is like: sums and counts; and the last values, by columns."""

    sums: NDArray[np.float64] = field(default_factory=lambda: np.zeros(24))
    counts: NDArray[np.int64] = field(default_factory=lambda: np.zeros((4, 6), np.int64))
    last: NDArray[np.float32] = field(default_factory=lambda: np.zeros((40, 50), np.float32, order="F"))


def learn(sample: Sample, day: Day) -> Average:
    slot = sample.slot % 24
    day.sums[slot] += sample.value
    day.counts[slot // 6, slot % 6] += 1
    day.last[sample.slot % 40] += sample.value
    return Average(sample.sensor, float(day.sums[slot] / day.counts[slot // 6, slot % 6] + day.last.sum()))


def new_table() -> NDArray[np.float64]:
    return np.full(24, np.nan)


def alone(sample: Sample, table: NDArray[np.float64]) -> Average:
    """A state that is an array, and nothing else."""
    table[sample.slot % 24] = sample.value
    return Average(sample.sensor, float(np.nansum(table)))


def application(function: Callable[..., Any], state: Callable[[], Any], **more: Any) -> Application:
    app = Application("meters")
    source = app.source("in", schema=Sample, key="sensor")
    source.stateful(function, state=state, name="fold", **more).sink("out")
    return app


def made(function: Callable[..., Any], state: Callable[[], Any], **more: Any) -> PartitionWorker:
    (stage,) = plan(application(function, state, **more)).stages
    return worker(program(stage, compiled=False))


SAMPLES = [("in", Sample(1 + number % 2, 7 * number, 0.1 * number)) for number in range(14)]
FORMS = pytest.mark.parametrize(("function", "state"), [(learn, Day), (alone, new_table)])


@FORMS
def test_neither_frames_nor_partitions_crashes_and_repetitions_make_a_difference(
    function: Callable[..., Any], state: Callable[[], Any]
) -> None:
    check(application(function, state), SAMPLES)


@pytest.mark.parametrize("moment", [CRASH, RESTORE])
@FORMS
def test_results_are_the_same_to_the_last_bit_whenever_it_is_restored(
    function: Callable[..., Any], state: Callable[[], Any], moment: Any
) -> None:
    expected = run(application(function, state), SAMPLES).outputs["out"]
    session = AppSession(application(function, state))
    for sample in SAMPLES:
        session.step(moment, sample)
    assert session.outcome.outputs["out"] == expected


@given(
    array=arrays(scalar_dtypes(), array_shapes(min_dims=0, min_side=0, max_dims=3, max_side=4)),
    by_columns=st.booleans(),
)
def test_dtype_shape_bytes_and_their_order_are_kept(array: NDArray[Any], by_columns: bool) -> None:  # noqa: FBT001
    array = np.asfortranarray(array) if by_columns and array.ndim else array
    if not array.dtype.itemsize:
        return
    found = MAKERS[ARRAY.code](*ARRAY.take(array))
    assert (found.dtype, found.shape, found.strides) == (array.dtype, array.shape, array.strides)
    assert found.tobytes("A") == array.tobytes("A")
    assert found.flags.writeable
    assert found.flags.owndata


@dataclass
class Held:
    table: Any = field(default_factory=lambda: np.zeros((4, 6)))


def hold(sample: Sample, held: Held) -> Average:
    """Slots 1 and up put an array there that no snapshot holds."""
    odd = [
        held.table,
        np.zeros((4, 6))[:, ::2],
        np.moveaxis(np.zeros((2, 3, 4)), 0, 1),
        np.array([object()]),
        np.ma.masked_array([1.0, 2.0], [True, False]),
    ]
    held.table = odd[sample.slot]
    return Average(sample.sensor, float(sample.value))


@pytest.mark.parametrize(
    ("slot", "names"),
    [
        (1, r"an array whose values are not contiguous.*array\.copy\(\)"),
        (2, r"an array whose values are not contiguous.*array\.copy\(\)"),
        (3, "an array of dtype object"),
        (4, "a numpy.ma.MaskedArray, which is neither plain data"),
    ],
)
def test_an_array_that_cannot_be_saved_is_named_with_the_remedy(slot: int, names: str) -> None:
    one = made(hold, Held)
    fold(one, [data("in/a", 1, [Sample(1, 0, 1.0)])])
    assert one.snapshot()
    fold(one, [data("in/a", 2, [Sample(1, slot, 1.0)])])
    with pytest.raises(ApplicationError, match=rf"stateful 'fold': a state.*Held\.table holds {names}"):
        one.snapshot()


def test_a_new_state_with_such_an_array_is_refused_before_anything_runs() -> None:
    with pytest.raises(ApplicationError, match=r"'fold': a new state cannot be saved: an array of dtype"):
        made(alone, lambda: np.array([None]))


# What new tables are like in the version of the application that is at work.
NEW: dict[str, Callable[[], NDArray[Any]]] = {"table": lambda: np.zeros(24)}


def as_now() -> NDArray[Any]:
    return NEW["table"]()


@dataclass
class Tables:
    table: NDArray[Any] = field(default_factory=as_now)


def tabled(sample: Sample, tables: Tables) -> Average:
    tables.table[sample.slot] += sample.value
    return Average(sample.sensor, float(tables.table.sum()))


def saved(function: Callable[..., Any], state: Callable[[], Any]) -> bytes:
    one = made(function, state)
    fold(one, [data("in/a", 1, [Sample(1, 3, 2.0)])])
    return one.snapshot()


@pytest.mark.parametrize(
    ("make", "shown"),
    [(lambda: np.zeros(24, np.float32), r"float32 \(24,\)"), (lambda: np.zeros(48), r"float64 \(48,\)")],
    ids=["dtype", "shape"],
)
def test_arrays_of_another_dtype_or_shape_are_those_of_another_application(
    make: Callable[[], Any], shown: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    snapshot = saved(tabled, Tables)
    made(tabled, Tables).restore(snapshot)
    monkeypatch.setitem(NEW, "table", make)
    names = rf"of float64 \(24,\).*Tables {{table: .* of {shown}}}.*migrate= function"
    with pytest.raises(StateChangedError, match=rf"'fold' has changed: .*{names}"):
        made(tabled, Tables).restore(snapshot)


def test_a_migration_makes_arrays_of_the_new_shape(monkeypatch: pytest.MonkeyPatch) -> None:
    def migrate(old: Any, version: int) -> Tables:
        assert version == 1
        return Tables(np.concatenate([old.table, np.zeros(24)]))

    snapshot = saved(tabled, Tables)
    monkeypatch.setitem(NEW, "table", lambda: np.zeros(48))
    one = made(tabled, Tables, migrate=migrate)
    one.restore(snapshot)
    (held,) = [state for _, state in one.tables["fold"].items()]
    assert held["table"] == [0, 0, 0, 2.0, *[0] * 44]


def test_an_array_that_is_the_state_is_known_by_dtype_and_shape_too() -> None:
    def table() -> NDArray[Any]:
        return np.zeros(size)

    size = 24
    snapshot = saved(alone, table)
    made(alone, table).restore(snapshot)
    size = 48
    with pytest.raises(StateChangedError, match=r"float64 \(24,\).*float64 \(48,\)"):
        made(alone, table).restore(snapshot)


@pytest.mark.parametrize(
    "parts",
    [
        ("<f8", (3,), bytes(16)),
        ("<f8", (-1,), bytes(16)),
        ("<f8", ("F", -1, 1), bytes(16)),
        ("<f8", ("C", 2), bytes(16)),
        ("<f8", ("F",), bytes(16)),
        ("<f8", (2.0,), bytes(16)),
        ("<f8", 2, bytes(16)),
        ("<f8", (2,), 16),
        ("<f8", (2,), bytes(15)),
        ("|O", (2,), bytes(16)),
        ("float64", (2,), bytes(16)),
    ],
    ids=str,
)
def test_bytes_that_are_no_array_are_an_error(parts: tuple[Any, ...]) -> None:
    with pytest.raises((TypeError, ValueError, OverflowError)):
        MAKERS[ARRAY.code](*parts)


def test_people_see_arrays_as_lists_and_their_nan_as_text(tmp_path: Path) -> None:
    one = made(alone, new_table)
    log = [data("in/a", 1, [Sample(1, 1, 2.5)])]
    fold(one, log)
    ((key, state),) = one.tables["fold"].items()
    expected = ["NaN", 2.5, *["NaN"] * 22]
    found = KeyState("in", "fold", 0, 1, str(key), state)
    for name in ("states.jsonl", "states.parquet"):
        assert export(tmp_path / name, iter([found])) == 1
    (line,) = (tmp_path / "states.jsonl").read_text().splitlines()
    assert json.loads(line, parse_constant=_refused)["state"] == expected
    (row,) = pyarrow.parquet.read_table(tmp_path / "states.parquet").to_pylist()
    assert json.loads(row["state"], parse_constant=_refused) == expected
    history = KeyHistory(one.program, Assignment("meters", 0, 1, FRAME_BYTES_MAX), 1, {})
    (event,) = history.fold(0, log[0])
    (step,) = json.loads(event_json(event), parse_constant=_refused)["states"]
    assert (step["before"], step["after"]) == (None, expected)


def _refused(word: str) -> None:
    raise AssertionError(f"{word} is no JSON")
