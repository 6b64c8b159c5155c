"""The windows of a computation that run over columns, by their kind, and the table of their panes."""

from typing import Any

import numpy as np

from bettong.application.windows.aggregated import Aggregated
from bettong.application.windows.kinds import Counts, Ephemeral, Ranges, Sessions
from bettong.application.windows.windowed import Windowed
from bettong.application.windows.windowing import Windowing
from bettong.schema.fields import Field, Kind
from bettong.schema.schema import Schema
from bettong.worker.fired import fired_schema
from bettong.worker.state.group_tables import CountTable, EphemeralTable
from bettong.worker.state.pane_pool import PanePool
from bettong.worker.state.pane_table import PaneTable
from bettong.worker.windows.accumulators import Accumulators
from bettong.worker.windows.column_windows import ColumnWindows, PaneWords
from bettong.worker.windows.fold_kernels import Folds
from bettong.worker.windows.group_columns import CountColumns, EphemeralColumns
from bettong.worker.windows.range_columns import RangeColumns
from bettong.worker.windows.session_columns import SessionColumns
from bettong.worker.windows.top_kernels import COUNT_MAX, WORD

_TABLES: dict[type[Any], type[PaneTable]] = {Counts: CountTable, Ephemeral: EphemeralTable}


def pane_table_of(
    node: Windowed, kind: Kind, dtype: np.dtype[Any], parts: tuple[Field, ...] | None
) -> PaneTable:
    """An empty table of a computation whose keys are of that type. Raises what `Accumulators` raises.

    `parts`: the fields of keys that are tuples.
    """
    accumulators, windowing = accumulators_of(node, fired_schema(kind, dtype)), node.windowing
    table = _TABLES.get(type(windowing.kind), PaneTable)
    return table(node, (kind, dtype, parts), pane_pool(windowing, accumulators.folds), accumulators.shown)


def pane_pool(windowing: Windowing, folds: Folds) -> PanePool:
    """An empty pool of panes of such windows."""
    windows = windowing.kind
    return PanePool(
        folds.words,
        are_combined=isinstance(windows, Ranges) and windows.panes > 1,
        are_sessions=isinstance(windows, Sessions),
        are_shown=windowing.early_ns is not None,
        kinds=folds.items,
        counters=folds.tops[:, [WORD, COUNT_MAX]],
    )


def column_windows(node: Windowed, table: PaneTable) -> tuple[ColumnWindows, Accumulators]:
    """The windows of a computation, and their accumulators."""
    accumulators, windowing = accumulators_of(node, table.fired), node.windowing
    if isinstance(windowing.kind, Ephemeral):
        return EphemeralColumns(windowing.kind, windowing.late, accumulators, table), accumulators
    if isinstance(windowing.kind, Counts):
        assert isinstance(table, CountTable)  # noqa: S101 - see `pane_table_of`
        return CountColumns(windowing.kind, accumulators, table), accumulators
    return spanning_windows(windowing, accumulators, table), accumulators


def spanning_windows(windowing: Windowing, kept: PaneWords, table: PaneTable) -> ColumnWindows:
    """Windows that span event time: on a grid, or sessions. `kept`: what their panes keep."""
    kind = windowing.kind
    if isinstance(kind, Sessions):
        return SessionColumns(kind, windowing.late, kept, table)
    assert isinstance(kind, Ranges)  # noqa: S101 - no others do
    return RangeColumns(kind, windowing, kept, table)


def try_windows(node: Windowed, table: PaneTable) -> None:
    """Compiles the kernels of a computation's windows, unless Numba has cached them. `table`: an empty one."""
    windows, accumulators = column_windows(node, table)
    windows.try_without_rows()
    keys, none = table.keys_at(np.empty(0, np.int32)), np.empty(0, np.int64)
    accumulators.results(keys, none, none, accumulators.alone(accumulators.nothing))


def accumulators_of(node: Windowed, fired: Schema) -> Accumulators:
    """The accumulators of a computation whose keys are those of `fired`."""
    aggregated = node.windowing.aggregation
    assert isinstance(aggregated, Aggregated)  # noqa: S101 - no others are compiled
    (takes,) = node.handlers
    are_timed = isinstance(node.windowing.kind, Counts)
    return Accumulators(f"window {node.name!r}", aggregated, takes, fired.fields[0], are_timed=are_timed)
