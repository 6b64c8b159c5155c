"""`bettong state list | get | export | reset`: the states that an application keeps, by key."""

from __future__ import annotations

import json as json_module
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bettong.cli.check import APPLICATION
from bettong.cli.directory import HERE
from bettong.cli.ending import terminable_command
from bettong.cli.fitting_tables import print_fitting
from bettong.cli.keys import key_in, stage_named
from bettong.cli.locations import DirectoryFlag, KafkaFlag, RedisFlag

if TYPE_CHECKING:
    from bettong.application.plan import Plan, Stage
    from bettong.inspection.live.states import States

state = typer.Typer(
    no_args_is_help=True,
    help="Read states from the newest snapshots while the application runs; or reset them.",
)

_Application = Annotated[str, APPLICATION]
_Stage = Annotated[str | None, typer.Option(metavar="NAME", help="Only this stage.")]
_Json = Annotated[bool, typer.Option("--json", help="Print one JSON object per line.")]


@state.command("list")
def list_(
    application: _Application,
    *,
    stage: _Stage = None,
    json: _Json = False,
    kafka: KafkaFlag = None,
    redis: RedisFlag = None,
    directory: DirectoryFlag = HERE,
) -> None:
    """List partitions: the offset of their newest snapshot, the log's end, the snapshot's size and number of keys."""
    from rich.console import Console
    from rich.table import Table

    plan, states = _states(application, directory, kafka, redis)
    table = Table(box=None, header_style="dim", pad_edge=False)
    for column in ("stage", "partition", "snapshot at", "log ends at", "bytes", "keys"):
        table.add_column(column, justify="left" if column in ("stage", "keys") else "right")
    with states:
        for each in _stages(plan, stage):
            for partition, log in sorted(states.logs(each).items()):
                held = states.held(each, partition)
                keys = held.keys if held is not None else {}
                offset = held.offset if held is not None else None
                size = held.size_bytes if held is not None else 0
                if json:
                    values = {
                        "stage": each.name,
                        "partition": partition,
                        "snapshot_offset": offset,
                        "log_end": log.end,
                        "bytes": size,
                        "keys": keys,
                    }
                    sys.stdout.write(json_module.dumps(values) + "\n")
                else:
                    counts = ", ".join(f"{name} {count:,}" for name, count in keys.items())
                    at = "none" if offset is None else f"{offset:,}"
                    table.add_row(each.name, str(partition), at, f"{log.end:,}", f"{size:,}", counts)
    if not json:
        print_fitting(Console(highlight=False), table)


@state.command()
def get(
    application: _Application,
    key: Annotated[str, typer.Argument(metavar="KEY", help="The key; bytes may be written as base64:...")],
    *,
    stage: Annotated[
        str | None, typer.Option(metavar="NAME", help="The stage; needed when there are several.")
    ] = None,
    kafka: KafkaFlag = None,
    redis: RedisFlag = None,
    directory: DirectoryFlag = HERE,
) -> None:
    """Print the states of one key, one JSON object for each computation. `bettong replay` shows how they came about."""
    from bettong.errors import BettongError
    from bettong.inspection.json_lines import state_json

    plan, states = _states(application, directory, kafka, redis)
    chosen = stage_named(plan, stage)
    value = key_in(chosen, key)
    with states:
        partition, found = states.of_key(chosen, value)
    for each in found:
        sys.stdout.write(state_json(each) + "\n")
    if not found:
        raise BettongError(
            f"key {key} has no state in stage {chosen.name}: the newest snapshot of its partition, {partition}, holds"
            " none"
        )


@state.command()
def export(
    application: _Application,
    file: Annotated[
        Path,
        typer.Argument(metavar="FILE", help="The file to write: .jsonl or .parquet; - for standard output."),
    ],
    *,
    stage: _Stage = None,
    kafka: KafkaFlag = None,
    redis: RedisFlag = None,
    directory: DirectoryFlag = HERE,
) -> None:
    """Write every state to a file: stage, computation, partition, offset, key and state.

    In Parquet the state is JSON text. Each partition is as of its own snapshot: they share no moment.
    """
    from bettong.inspection.json_lines import state_json
    from bettong.inspection.live.state_files import WRITERS
    from bettong.inspection.live.state_files import export as export_states

    if str(file) != "-" and file.suffix not in WRITERS:
        raise typer.BadParameter(f"{file}: expected a name that ends with .jsonl or .parquet, or -")
    plan, states = _states(application, directory, kafka, redis)
    with states:
        found = states.all(_stages(plan, stage))
        if str(file) == "-":
            for each in found:
                sys.stdout.write(state_json(each) + "\n")
            return
        count = export_states(file, found)
    typer.echo(f"{count:,} states in {file}")


@state.command()
def reset(
    application: _Application,
    *,
    yes: Annotated[
        bool, typer.Option("--yes", help="Do it; without this, only print what would be done.")
    ] = False,
    kafka: KafkaFlag = None,
    redis: RedisFlag = None,
    directory: DirectoryFlag = HERE,
) -> None:
    """Delete all snapshots, so that the next start folds every state again from the beginning of the log.

    For states that older code has built. Delivered results stay, and are not delivered again. Refused while the
    processor runs, and when the beginning of a log was deleted. Of a suite on this machine (`bettong down` first)
    Kafka and Redis are started, and stopped again.
    """
    from bettong.inspection.live.application import loaded_plan
    from bettong.inspection.live.states import States
    from bettong.inspection.states import reset_text
    from bettong.local.rest import at_rest

    plan = loaded_plan(application)
    with (
        terminable_command(),
        at_rest(application, plan.application, directory, kafka=kafka, redis=redis) as where,
        States(plan, where) as states,
    ):
        if yes:
            states.refuse_while_folded()
        records = states.records_to_fold()
        if yes:
            states.clear()
    typer.echo(reset_text(plan.application, records, done=yes))


def _states(application: str, directory: Path, kafka: str | None, redis: str | None) -> tuple[Plan, States]:
    from bettong.inspection.live.application import loaded_plan
    from bettong.inspection.live.states import States
    from bettong.local.locations import locations

    planned = loaded_plan(application)
    where = locations(application, planned.application, directory, kafka=kafka, redis=redis)
    return planned, States(planned, where)


def _stages(plan: Plan, name: str | None) -> list[Stage]:
    return list(plan.stages) if name is None else [stage_named(plan, name)]
