"""`bettong log`: the messages that clients have sent, as a file or as a test."""

from __future__ import annotations

import sys
from datetime import UTC, datetime
from typing import Annotated

import typer

from bettong.cli.check import APPLICATION
from bettong.cli.directory import HERE
from bettong.cli.keys import key_in, stage_named
from bettong.cli.locations import DirectoryFlag, KafkaFlag, RedisFlag

_TIMES = ["%Y-%m-%dT%H:%M:%S", "%Y-%m-%d %H:%M:%S", "%Y-%m-%dT%H:%M", "%Y-%m-%d %H:%M", "%Y-%m-%d"]


def log(
    application: Annotated[str, APPLICATION],
    *,
    key: Annotated[
        str | None, typer.Option(metavar="KEY", help="Only this key; bytes may be written as base64:...")
    ] = None,
    stage: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Only this stage; needed with --key when there are several."),
    ] = None,
    since: Annotated[
        datetime | None, typer.Option(formats=_TIMES, help="Only messages received from then on (UTC).")
    ] = None,
    until: Annotated[
        datetime | None, typer.Option(formats=_TIMES, help="Only messages received before then (UTC).")
    ] = None,
    test: Annotated[bool, typer.Option("--test", help="Print a test to paste, instead of records.")] = False,
    kafka: KafkaFlag = None,
    redis: RedisFlag = None,
    directory: DirectoryFlag = HERE,
) -> None:
    """Print messages that clients have sent: records for `bettong.testing.read_log`, or a test of them.

    Reads the log, and the reference tables that it names, while the application runs: nothing is stopped or
    written. --key alone selects the records of the key's partition; with --test, only those of the key.
    """
    from bettong.application.plan import plan
    from bettong.inspection.live.application import loaded_application
    from bettong.inspection.live.recorded_case import recorded_case
    from bettong.inspection.live.source_logs import source_records, source_stages, with_joins
    from bettong.inspection.live.stored_references import StoredReferences
    from bettong.local.locations import locations
    from bettong.testing import write_log
    from bettong.testing.logged import is_needed, with_tables

    if since is not None and until is not None and since >= until:
        raise typer.BadParameter(f"--since {since} is not before --until {until}: no message lies between")
    app = loaded_application(application)
    planned = plan(app)
    stages = source_stages(planned)
    if stage is not None or key is not None:
        stages = [stage_named(planned, stage if stage is not None or len(stages) > 1 else stages[0].name)]
    value = key_in(stages[0], key) if key is not None else None
    where = locations(application, planned.application, directory, kafka=kafka, redis=redis)
    span = (_utc(since), _utc(until))
    if test:
        sys.stdout.write(recorded_case(app, planned, stages, where, key=value, span=span))
        return
    logged = source_records(planned, with_joins(planned, stages), where, value)
    records = with_tables(planned, logged, span, StoredReferences(planned.application, where))
    for line in write_log(record for record in records if is_needed(record, span)):
        sys.stdout.write(line)


def _utc(at: datetime | None) -> datetime | None:
    return at.replace(tzinfo=UTC) if at is not None else None
