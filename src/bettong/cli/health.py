"""`bettong health`: whether this container's processor makes progress; its probes call it."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bettong.cli.exit_codes import NOT_RUNNING

if TYPE_CHECKING:
    from bettong.inspection.health import Facts

_STALLED = typer.Option(
    min=1.0,
    metavar="S",
    help="Exit code 7 when records wait and none was folded, or nothing was reported, for S seconds.",
)
_RUNNING = typer.Option(
    "--running",
    help="Only check that the processor reports a running schedule, or that it stands by; else exit code 7.",
)
_MEMORY = typer.Option(metavar="FILE", help="The file that keeps the last check's result, in this container.")


def health(
    *,
    memory: Annotated[Path, _MEMORY],
    running: Annotated[bool, _RUNNING] = False,
    stalled_s: Annotated[float, _STALLED] = 600.0,
) -> None:
    """Report whether the processor makes progress, for the probes of its container. Settings are the processor's.

    A Kafka or a Redis that does not answer does not count as a stall: exit code 0, and with --running 7.
    """
    from bettong.config.processor import ProcessorSettings
    from bettong.config.reading import read
    from bettong.inspection.health import has_started, observed
    from bettong.inspection.live.health import facts_now, record_of
    from bettong.inspection.live.health_memory import HealthMemory, remember, remembered
    from bettong.metrics import STATE

    settings = read(ProcessorSettings)
    known = remembered(memory, settings.application)
    application, topics = known.application, known.topics
    if running:
        # Called at a container's start: checks of the previous container do not count against this one.
        remember(memory, HealthMemory(application, topics, None))
        record, fault = record_of(settings, application)
        typer.echo(f"{settings.instance}: {fault or record.get(STATE.name, 'has reported nothing to Redis')}")
        raise typer.Exit(0 if has_started(record) else NOT_RUNNING)
    facts, now_s = facts_now(settings, application, topics), time.time()
    seen = observed(facts, known.seen, now_s)
    remember(memory, HealthMemory(application, topics, seen))
    still_s = now_s - seen.since_s
    typer.echo(f"{settings.instance}: {_said(facts)}, for {still_s:.0f} s")
    raise typer.Exit(NOT_RUNNING if still_s >= stalled_s else 0)


def _said(facts: Facts | None) -> str:
    if facts is None:
        return "Kafka or Redis does not answer"
    if not facts.speaks:
        return "has reported nothing to Redis"
    return f"{facts.folded:,} records folded, {facts.waiting:,} wait"
