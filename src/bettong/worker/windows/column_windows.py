"""The windows of a computation over columns, by their kind: see `key_windows`."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from bettong.application.windows.aggregated import Aggregated
from bettong.application.windows.kinds import Counts, Ephemeral, Ranges
from bettong.application.windows.windowed import Windowed
from bettong.schema.fields import Field, Kind
from bettong.schema.schema import Schema
from bettong.worker.fired import fired_schema
from bettong.worker.state.group_tables import CountTable, EphemeralTable
from bettong.worker.state.pane_pool import PanePool
from bettong.worker.state.pane_table import PaneTable
from bettong.worker.windows.accumulators import Accumulators
from bettong.worker.windows.group_columns import CountColumns, EphemeralColumns
from bettong.worker.windows.range_columns import RangeColumns
from bettong.worker.windows.top_kernels import COUNT_MAX, WORD

ColumnWindows: TypeAlias = RangeColumns | CountColumns | EphemeralColumns

_TABLES: dict[type[Any], type[PaneTable]] = {
    Ranges: PaneTable,
    Counts: CountTable,
    Ephemeral: EphemeralTable,
}


def pane_table_of(
    node: Windowed, kind: Kind, dtype: np.dtype[Any], parts: tuple[Field, ...] | None
) -> PaneTable:
    """The table of a computation whose keys are of that type, without any. Raises as `Accumulators`.

    `parts`: the fields of keys that are tuples.
    """
    windows = node.windowing.kind
    accumulators = _accumulators_of(node, fired_schema(kind, dtype))
    folds = accumulators.folds
    panes = PanePool(
        accumulators.words,
        are_combined=isinstance(windows, Ranges) and windows.panes > 1,
        kinds=folds.items,
        counters=folds.tops[:, [WORD, COUNT_MAX]],
    )
    return _TABLES[type(windows)](node, (kind, dtype, parts), panes, accumulators.shown)


def column_windows(node: Windowed, table: PaneTable) -> tuple[ColumnWindows, Accumulators]:
    """The windows of a computation, and what they keep."""
    accumulators, kind = _accumulators_of(node, table.fired), node.windowing.kind
    if isinstance(kind, Ranges):
        return RangeColumns(kind, accumulators, table), accumulators
    if isinstance(kind, Ephemeral):
        late_gives = node.windowing.late == "fire"
        return EphemeralColumns(kind, accumulators, table, late_gives=late_gives), accumulators
    assert isinstance(kind, Counts)  # noqa: S101 - no others are compiled
    assert isinstance(table, CountTable)  # noqa: S101 - see `pane_table_of`
    return CountColumns(kind, accumulators, table), accumulators


def try_windows(node: Windowed, table: PaneTable) -> None:
    """Compiles what the windows of a computation need, unless Numba has kept it. `table`: a new one."""
    column_windows(node, table)[0].try_without_rows()


def _accumulators_of(node: Windowed, fired: Schema) -> Accumulators:
    """Of a computation whose keys are those of `fired`."""
    aggregated = node.windowing.aggregation
    assert isinstance(aggregated, Aggregated)  # noqa: S101 - no others are compiled
    (takes,) = node.handlers
    are_timed = isinstance(node.windowing.kind, Counts)
    return Accumulators(f"window {node.name!r}", aggregated, takes, fired.fields[0], are_timed=are_timed)
