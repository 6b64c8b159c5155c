"""`bettong status`: services, their progress, and what went wrong."""

from __future__ import annotations

import math
import os
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bettong.cli.account_tables import accounts_table, differences
from bettong.cli.computation_table import computations_table
from bettong.cli.directory import DIRECTORY, HERE, nothing_runs
from bettong.cli.exit_codes import NOT_RUNNING
from bettong.cli.fitting_tables import print_fitting
from bettong.cli.latency_tables import latency_table, no_parts
from bettong.cli.locations import without_password_flag
from bettong.cli.printable import escaped
from bettong.cli.queue_texts import show_queues
from bettong.cli.status_texts import duration, stuck, summary
from bettong.cli.watermark_texts import show_watermarks
from bettong.inspection.unmeasured import MeasureKind
from bettong.services import CONSOLE

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from bettong.inspection.deployment import Inspection
    from bettong.inspection.overview import PartitionRow, StageSummary
    from bettong.inspection.services import ServiceRow

REDIS = typer.Option(
    metavar="URL",
    callback=without_password_flag,
    help="The Redis of a deployment elsewhere; by default BETTONG_REDIS. Needs --application too.",
)
APPLICATION = typer.Option(metavar="NAME", help="The name of the application that is deployed there.")
KAFKA = typer.Option(
    metavar="HOST:PORT",
    help="Its Kafka, by default BETTONG_KAFKA; without it, lag is as the processor reports it.",
)
_PARTITIONS = typer.Option("--partitions", help="Show each partition, not only each stage.")
_ACCOUNTS = typer.Option(
    "--accounts", help="Show what became of the messages of each computation: is anything lost?"
)
_LATENCY = typer.Option(
    "--latency", help="Show the parts of the latency of each sink: where do results spend their time?"
)
_COMPUTATIONS = typer.Option(
    "--computations",
    help="Show how busy each computation is and how long a frame takes there: where does the time go?",
)
_WATERMARKS = typer.Option(
    "--watermarks",
    help="Show which windows are open, and which origin of which source holds each of them open, since when.",
)
_QUEUES = typer.Option(
    "--queues",
    help="Show the queues of all services, what holds them up, and the slowest clients and subscribers.",
)
_JSON = typer.Option(
    "--json", help="Print one JSON object, partitions included, for scripts: see docs/status-json.md."
)
# Characters of a key that a table shows.
_KEY_CHARACTERS_MAX = 24
_COLOURS = {
    "running": "green",
    "standby": "green",
    "starting": "yellow",
    "waiting": "yellow",
    "stopping": "yellow",
}


def status(
    *,
    directory: Annotated[Path, DIRECTORY] = HERE,
    redis: Annotated[str | None, REDIS] = None,
    application: Annotated[str | None, APPLICATION] = None,
    kafka: Annotated[str | None, KAFKA] = None,
    each: Annotated[bool, _PARTITIONS] = False,
    accounts: Annotated[bool, _ACCOUNTS] = False,
    latency: Annotated[bool, _LATENCY] = False,
    computations: Annotated[bool, _COMPUTATIONS] = False,
    watermarks: Annotated[bool, _WATERMARKS] = False,
    queues: Annotated[bool, _QUEUES] = False,
    json: Annotated[bool, _JSON] = False,
) -> None:
    """Show services, partitions, dead letters and latency. Exit code 0: all of it works; 7: something does not."""
    from rich.console import Console

    from bettong.inspection.services import RUNNING
    from bettong.local.inspecting import inspect_suite
    from bettong.local.record import find

    console = Console(highlight=False)
    found: Inspection | None = None
    page: str | None = None
    metrics: list[str] = []
    if (name := elsewhere(redis, application)) is not None:
        found = _elsewhere(name, redis, kafka)
    elif (record := find(directory)) is not None:
        found, page, metrics = inspect_suite(record), record.console, record.metrics_lines
    nothing = nothing_runs(directory)
    if json:
        _print_json(found, nothing)
    elif found is None:
        console.print(nothing)
    else:
        show(
            found,
            console,
            each=each,
            accounts=accounts,
            computations=computations,
            latency=latency,
            watermarks=watermarks,
            queues=queues,
        )
        if page is not None and any(row.name == CONSOLE and row.state == RUNNING for row in found.services):
            console.print(f"see it at {page}", soft_wrap=True)
        for text in metrics:
            console.print(text, soft_wrap=True)
    if found is None or not found.goes_on:
        raise typer.Exit(NOT_RUNNING)


def elsewhere(redis: str | None, application: str | None) -> str | None:
    """The application elsewhere that flags name; None: the suite of a folder. Raises SettingsError."""
    from bettong.errors import SettingsError

    if redis is None and application is None:
        return None
    if application is None or (redis is None and "BETTONG_REDIS" not in os.environ):
        raise SettingsError(
            "--redis and --application go together: give both, or neither for the suite on this machine"
        )
    return application


def _print_json(found: Inspection | None, nothing: str) -> None:
    from bettong.inspection.status_form import status_form

    typer.echo(status_form(found, time.time(), nothing).model_dump_json(indent=2))


def _elsewhere(application: str, redis: str | None, kafka: str | None) -> Inspection:
    from bettong.config.connection_settings import ConnectionSettings
    from bettong.config.reading import read
    from bettong.inspection.live.deployment import inspect_remote

    flags = {"redis": redis, "kafka": kafka}
    settings = read(ConnectionSettings, {name: value for name, value in flags.items() if value is not None})
    where = settings.kafka_connection if "kafka" in settings.model_fields_set else None
    return inspect_remote(application, settings.redis_connection, where)


def show(
    found: Inspection,
    console: Console,
    *,
    each: bool,
    accounts: bool = False,
    computations: bool = False,
    latency: bool = False,
    watermarks: bool = False,
    queues: bool = False,
) -> None:
    """Prints the tables. `each`: every partition; `accounts`, `computations`: every computation; `latency`: its parts;
    `watermarks`: open windows; `queues`: the queues of services.
    """
    console.print(f"[bold]{escaped(found.application)}[/bold]")
    print_fitting(console, services_table(found.services, time.time()))
    if found.stages:
        print_fitting(console, stages_table(found.stages))
    if found.partitions and each:
        print_fitting(console, partitions_table(found.partitions, time.time_ns()))
    if "redis" not in found.away:  # these are read from Redis
        if each and MeasureKind.HOT_KEYS in found.not_measured:
            console.print(MeasureKind.HOT_KEYS.is_off)
        if accounts:
            print_fitting(console, accounts_table(found.accounts))
        if computations:
            is_off = MeasureKind.COMPUTATIONS in found.not_measured
            times = MeasureKind.COMPUTATIONS.is_off if is_off else computations_table(found.computations)
            print_fitting(console, times)
        if latency:
            parts = found.overview.latency_parts
            print_fitting(console, latency_table(parts) if parts else no_parts(found))
        if watermarks:
            show_watermarks(found.partitions, console, time.time_ns())
        if queues:
            show_queues(found.queues, console)
        for text in (*summary(found.overview), *stuck(found.partitions), *differences(found.accounts)):
            console.print(text, soft_wrap=True)
    for text in found.unknown:
        console.print(f"[red]{escaped(text)}[/red]", soft_wrap=True)


def services_table(rows: list[ServiceRow], now_s: float) -> Table:
    """Each service's state and its age, its process, and what it waits for."""
    from rich.table import Table

    table = Table(box=None, header_style="dim", pad_edge=False)
    for column in ("service", "state", "for", "process", "restarts", "detail"):
        table.add_column(column, justify="right" if column in ("for", "process", "restarts") else "left")
    for row in rows:
        colour = _COLOURS.get(row.state, "red")
        table.add_row(
            escaped(row.name),
            f"[{colour}]{escaped(row.state)}[/{colour}]",
            duration(now_s - row.since_s) if row.since_s is not None else "",
            str(row.process.pid) if row.process is not None else "",
            str(row.process.restarts) if row.process is not None and row.process.restarts else "",
            escaped(row.detail),
        )
    return table


def stages_table(found: list[StageSummary]) -> Table:
    """The progress of each stage's partitions."""
    from rich.table import Table

    table = Table(box=None, header_style="dim", pad_edge=False)
    columns = ("stage", "partitions", "offset", "snapshot", "messages", "results", "dead letters", "skipped")
    for column in (*columns, "skipped frames"):
        table.add_column(column, justify="left" if column == "stage" else "right")
    for each in found:
        numbers = (
            each.partitions,
            each.offset,
            each.snapshot_offset,
            each.messages,
            each.results,
            each.dead_letters,
            each.skipped,
            each.skipped_frames,
        )
        table.add_row(escaped(each.stage), *(f"{number:,}" for number in numbers))
    return table


def partitions_table(found: list[PartitionRow], now_ns: int) -> Table:
    """Each partition's progress and rates; what its schedule does not measure stays empty.

    With event time also: how far the watermark is behind `now_ns`, and the origin that holds it back. And the key that
    has most of the messages.
    """
    from rich.table import Table

    table = Table(box=None, header_style="dim", pad_edge=False)
    columns = (
        "partition",
        "offset",
        "snapshot",
        "lag",
        "still for",
        "messages",
        "messages/s",
        "p50 ms",
        "p99 ms",
    )
    by_event_time = any(row.watermark_ns or row.watermark_held_by for row in found)
    have_hot_keys = any(row.hot_keys for row in found)
    more = (*(("watermark", "held by") if by_event_time else ()), *(("hot key",) if have_hot_keys else ()))
    for column in (*columns, *more):
        table.add_column(column, justify="left" if column in ("partition", "held by", "hot key") else "right")
    for row in found:
        before, after = (row.offset, row.snapshot_offset, row.lag), (row.messages, row.messages_per_s)
        times = (row.p50_ms, row.p99_ms)
        still = (
            ("no owner" if row.stalled_s == math.inf else duration(row.stalled_s)) if row.stalled_s else ""
        )
        table.add_row(
            escaped(f"{row.stage}/{row.partition}"),
            *(f"{count:,.0f}" if count is not None else "" for count in before),
            still,
            *(f"{count:,.0f}" if count is not None else "" for count in after),
            *(f"{time_ms:,.1f}" if time_ms is not None else "" for time_ms in times),
            *(_watermark(row, now_ns) if by_event_time else ()),
            *((_hot_key(row),) if have_hot_keys else ()),
        )
    return table


def _hot_key(row: PartitionRow) -> str:
    return (
        f"{row.hot_keys[0].share:.0%} {escaped(row.hot_keys[0].key[:_KEY_CHARACTERS_MAX])}"
        if row.hot_keys
        else ""
    )


def _watermark(row: PartitionRow, now_ns: int) -> tuple[str, str]:
    behind = f"-{duration((now_ns - row.watermark_ns) / 1e9)}" if row.watermark_ns else "unknown"
    return behind, escaped(row.watermark_held_by)
