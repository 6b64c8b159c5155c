"""Compiled joins, by their kind: the table of each, and its ColumnJoin."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from bettong.application.joins.joined import Joined
from bettong.application.joins.kinds import AsOf, InWindow, Latest, Within
from bettong.schema.fields import Field, Kind
from bettong.worker.joins.as_of_columns import AsOfColumns
from bettong.worker.joins.column_join import ColumnJoin
from bettong.worker.joins.latest_columns import Deletes, LatestColumns
from bettong.worker.joins.pane_messages import PaneMessages
from bettong.worker.joins.window_columns import WindowColumns
from bettong.worker.joins.within_columns import WithinColumns
from bettong.worker.state.join_table import AsOfTable, JoinTable
from bettong.worker.state.latest_table import LatestTable
from bettong.worker.state.pane_table import PaneTable
from bettong.worker.state.record_layout import check_fixed
from bettong.worker.windows.compiled_kinds import pane_pool

ColumnTable: TypeAlias = JoinTable | LatestTable | PaneTable


def column_table(node: Joined, key: tuple[Kind, np.dtype[Any], tuple[Field, ...] | None]) -> ColumnTable:
    """An empty table. `key`: its kind and type, and its fields where it is a tuple. Raises ApplicationError."""
    if isinstance(node.kind, Latest):
        return LatestTable(node, key)
    if isinstance(node.kind, InWindow):
        messages = _window_messages(node)
        panes = pane_pool(node.kind.windowing, messages.folds)
        return PaneTable(node, key, panes, messages.shown)
    return (AsOfTable if isinstance(node.kind, AsOf) else JoinTable)(node, key, node.sides)


def column_join(node: Joined, table: ColumnTable, deletes: Deletes | None = None) -> ColumnJoin:
    """The ColumnJoin of a compiled join. `deletes`: see LatestColumns."""
    if isinstance(table, LatestTable):
        return LatestColumns(node, table, deletes)
    if isinstance(table, AsOfTable):
        return AsOfColumns(node, table)
    if isinstance(table, PaneTable):
        assert isinstance(node.kind, InWindow)  # noqa: S101 - no others have panes
        return WindowColumns(node.kind, node.how, _window_messages(node), table)
    assert isinstance(node.kind, Within)  # noqa: S101 - no others are left
    return WithinColumns(node.kind, node.how, table)


def _window_messages(node: Joined) -> PaneMessages:
    for schema in node.sides:
        check_fixed("compiled", node.name, schema)
    return PaneMessages(node.sides)
