"""`bettong replay`: what happened to one key, and why."""

from __future__ import annotations

import signal
import sys
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated

import typer

from bettong.cli.check import APPLICATION
from bettong.cli.directory import HERE
from bettong.cli.keys import key_in, stage_named
from bettong.cli.locations import DirectoryFlag, KafkaFlag, RedisFlag
from bettong.cli.printable import printable, printable_lines

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from bettong.inspection.key_history import Event, KeyHistory
    from bettong.inspection.live.key_history import PartitionLog, Stretch
    from bettong.inspection.locations import Locations

# Longer states and messages are truncated in the table; --json has them whole.
_CELL_CHARACTERS = 300


def replay(
    application: Annotated[str, APPLICATION],
    *,
    key: Annotated[str, typer.Option(metavar="KEY", help="The key; bytes may be written as base64:...")],
    until: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="OFFSET",
            help="Fold the records below this offset of the key's partition; by default, the log's end.",
        ),
    ] = None,
    stage: Annotated[
        str | None, typer.Option(metavar="NAME", help="The stage; needed when there are several.")
    ] = None,
    last: Annotated[
        int, typer.Option(min=1, max=100_000, metavar="N", help="Show the last N messages of the key.")
    ] = 20,
    from_snapshot: Annotated[
        bool,
        typer.Option(
            "--from-snapshot",
            help="Begin at the newest snapshot before the end: quicker, but earlier messages are not shown.",
        ),
    ] = False,
    json: Annotated[bool, typer.Option("--json", help="Print one JSON object per message.")] = False,
    kafka: KafkaFlag = None,
    redis: RedisFlag = None,
    directory: DirectoryFlag = HERE,
) -> None:
    """Show one key's history: each message, the state before and after it, and its results.

    Replays the log of the key's partition while the application runs: nothing is stopped or written.
    """
    from rich.console import Console

    from bettong.inspection.json_lines import event_json
    from bettong.inspection.live.application import loaded_plan
    from bettong.inspection.live.key_history import history_of, log_of, stretch_of
    from bettong.local.locations import locations

    planned = loaded_plan(application)
    chosen = stage_named(planned, stage)
    value = key_in(chosen, key)
    where = locations(application, planned.application, directory, kafka=kafka, redis=redis)
    console = Console(highlight=False)
    with console.status("finding where to begin ..."):
        log = log_of(planned, chosen, value, where)
        stretch = stretch_of(planned, log, where, _until(log, until), from_snapshot=from_snapshot)
    history = history_of(planned, value, where, stretch)
    events = _folded(history, stretch, where, last, console)
    if json:
        for event in events:
            sys.stdout.write(event_json(event) + "\n")
        if history.stopped is not None:
            why = printable(str(history.stopped))
            Console(stderr=True, highlight=False).print(why, markup=False, soft_wrap=True)
        return
    console.print(f"{printable(key)} is in partition {log.partition} of stage {chosen.name}", markup=False)
    _show(console, events, history, stretch)


def events_table(events: Sequence[Event]) -> Table:
    """A line for each message, with a line for each state and each result in it."""
    from rich import box
    from rich.table import Table

    from bettong.inspection.key_history import TIME_PASSED
    from bettong.inspection.text import moment

    table = Table(box=box.HORIZONTALS, show_lines=True, header_style="dim", pad_edge=False)
    for column in ("offset", "taken in (UTC)", "message", "state", "leads to"):
        table.add_column(column, justify="right" if column == "offset" else "left", overflow="fold")
    for event in events:
        states = [
            f"{step.computation}: {_state(step.before)} -> {_state(step.after)}" for step in event.steps
        ]
        results = [f"{target}: {_shortened(message)}" for target, message in event.outputs]
        results += [f"{policy} of {computation}: {reason}" for computation, policy, reason in event.failures]
        message = f"{_shortened(event.message)}\n{event.origin}, frame {event.sequence} [{event.index}]"
        if event.verdict == TIME_PASSED:
            message = f"(none: {event.origin})"
            results.append("time passed: a state ended, or a timer fired")
        elif event.verdict != "taken":
            results.append(f"skipped: a {event.verdict}")
        table.add_row(
            str(event.offset),
            moment(event.time_ns).replace(" ", "\n"),
            _cell(message),
            _cell("\n".join(states)),
            _cell("\n".join(results)),
        )
    return table


def _until(log: PartitionLog, until: int | None) -> int:
    """The offset to stop at: the flag's, else the current end of the log."""
    if until is not None and until > log.end:
        raise typer.BadParameter(
            f"--until {until}: the log of partition {log.partition} of stage {log.stage.name}, where the key is, ends"
            f" at {log.end}"
        )
    return log.end if until is None else until


def _show(console: Console, events: Sequence[Event], history: KeyHistory, stretch: Stretch) -> None:
    begun = f"from the snapshot at {stretch.first}" if stretch.snapshot is not None else "from the beginning"
    console.print(
        f"folded {begun} up to offset {history.next_offset}; the last {len(events):,} message(s) of the key:",
        soft_wrap=True,
    )
    if events:
        console.print(events_table(events))
    if history.stopped is not None:
        console.print(
            f"the fold stops here: {printable(str(history.stopped))}",
            style="red",
            markup=False,
            soft_wrap=True,
        )


def _folded(
    history: KeyHistory, stretch: Stretch, where: Locations, last: int, console: Console
) -> list[Event]:
    from rich.progress import Progress

    from bettong.inspection.live.key_history import folded

    events: deque[Event] = deque(maxlen=last)
    shown = Progress(console=console, transient=True, disable=not console.is_terminal)
    with _interrupts_end(), shown as progress:
        task = progress.add_task("folding", total=stretch.until - stretch.first)
        for found in folded(history, stretch, where):
            events.extend(found)
            progress.advance(task)
    return list(events)


@contextmanager
def _interrupts_end() -> Iterator[None]:
    """Ctrl-C ends the process: a KeyboardInterrupt within a user's function would count as a failed message."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _cell(text: str) -> str:
    from rich.markup import escape

    return escape(printable_lines(text))


def _state(state: object) -> str:
    from bettong.frames.text import to_json

    return "nothing" if state is None else _shortened(to_json(state))


def _shortened(text: str) -> str:
    return text if len(text) <= _CELL_CHARACTERS else text[:_CELL_CHARACTERS] + " ..."
