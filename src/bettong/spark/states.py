"""`bettong.spark.state`: the states of a computation, from the newest snapshots."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Unpack

import pyarrow as pa

from bettong.errors import SnapshotError
from bettong.inspection.live.states import States
from bettong.spark.data_frames import of_tasks, require_spark
from bettong.spark.located import LocatedApplication, WhereOptions, located
from bettong.spark.state_columns import StateColumns, computation_named
from bettong.topics import stage_topic

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


def state(
    app: str | Path,
    spark: SparkSession,
    computation: str | None = None,
    *,
    as_json: bool = False,
    **where: Unpack[WhereOptions],
) -> DataFrame:
    """The state of every key of a computation, a row each. `computation` may be omitted if only one is stateful.

    Columns: the fields of the key under their names (else `key`, text), the fields of the state under their names
    (`state_NAME` where the key has a field of that name), `_partition` and `_offset`. A state that is not a dataclass,
    TypedDict or pydantic model of schema types is one column `state` of JSON text, as are states of windows and joins;
    with `as_json` all are. A timer that is not set is null.

    One task a partition reads its newest undamaged snapshot with each action, so a later action may find newer ones.
    The partitions are not of one moment: each is as of its own `_offset`, up to a snapshot interval behind the running
    application, which is not disturbed. A task holds the states of its partition in memory.

    `where`: see `bettong.spark`. Raises ApplicationError for an unknown computation; LogError, LocalError and
    SettingsError where the application is not found; SnapshotError where there is no snapshot. An action raises
    SnapshotError where all snapshots of a partition are damaged or were saved by another version of the application.
    """
    require_spark()
    of, plan = located(app, where)
    stage, node = computation_named(plan, computation)
    of.logs([stage_topic(plan.application, stage.name)])  # raises a clear error if the topic does not exist
    found = of.found.on_this_machine()
    with States(plan, found) as states:
        partitions = len(states.logs(stage))
        if not states.are_kept(stage, range(partitions)):
            raise SnapshotError(
                f"{found.snapshots} holds no snapshot of stage {stage.name!r} of {plan.application}: its processor has"
                " saved none yet, or keeps them elsewhere; start it, or say where with redis= or BETTONG_SNAPSHOTS"
            )
    columns = StateColumns(stage, node, as_json=as_json)
    return of_tasks(spark, partitions, _PartitionStates(of, node.name, as_json), columns.arrow)


@dataclass(frozen=True, slots=True)
class _PartitionStates:
    """The states of one partition as rows."""

    of: LocatedApplication
    computation: str
    as_json: bool

    def __call__(self, partition: int) -> Iterator[pa.RecordBatch]:
        """Runs in a task of Spark."""
        plan = self.of.plan()
        stage, node = computation_named(plan, self.computation)
        with States(plan, self.of.found.on_this_machine()) as states:
            held = states.held(stage, partition)
        if held is not None:
            yield from StateColumns(stage, node, as_json=self.as_json).rows(held)
