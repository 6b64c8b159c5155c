"""`bettong replay`: what happened to one key, and why."""

from __future__ import annotations

import json as json_module
import signal
import sys
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated

import typer

from bettong.cli.check import APPLICATION
from bettong.cli.keys import key_in, stage_named
from bettong.cli.locations import DirectoryFlag, KafkaFlag, Locations, RedisFlag, locations
from bettong.cli.run import HERE
from bettong.snapshots.chain import chains
from bettong.snapshots.store import read_chain

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from bettong.application.plan import Plan, Stage
    from bettong.snapshots.store import SnapshotStore
    from bettong.worker.exclusions import Exclusion
    from bettong.worker.history import Event, KeyHistory, KeyValue

# Longer states and messages are cut in the table; --json has them whole.
_CELL_CHARACTERS = 300


@dataclass(frozen=True, slots=True)
class Stretch:
    """What is folded: records of a partition from `first` up to but not including `until`, after `snapshot`."""

    topic: str
    partition: int
    partitions: int
    first: int
    until: int
    snapshot: list[bytes] | None


def replay(
    application: Annotated[str, APPLICATION],
    *,
    key: Annotated[str, typer.Option(metavar="KEY", help="The key; bytes may be written as base64:...")],
    until: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="OFFSET",
            help="Fold the records below this offset of the key's partition; by default all there are now.",
        ),
    ] = None,
    stage: Annotated[
        str | None, typer.Option(metavar="NAME", help="The stage; needed when there are several.")
    ] = None,
    last: Annotated[
        int, typer.Option(min=1, max=100_000, metavar="N", help="Show the last so many messages of the key.")
    ] = 20,
    from_snapshot: Annotated[
        bool,
        typer.Option(
            "--from-snapshot",
            help="Begin at the newest snapshot that reaches: quicker, but what came before it is not shown.",
        ),
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="One JSON object a message, and a state that ended.")
    ] = False,
    kafka: KafkaFlag = None,
    redis: RedisFlag = None,
    directory: DirectoryFlag = HERE,
) -> None:
    """Show one key's history: each message, the state before and after, and what it led to.

    Folds the log of the key's partition again, beside what runs: nothing is stopped and nothing is written.
    """
    from rich.console import Console

    from bettong.application.loading import load
    from bettong.application.plan import plan

    planned = plan(load(application))
    chosen = stage_named(planned, stage)
    value = key_in(chosen, key)
    where = locations(application, planned.application, directory, kafka=kafka, redis=redis)
    console = Console(highlight=False)
    with console.status("looking for where to begin ..."):
        stretch = _stretch(planned, chosen, value, where, until=until, from_snapshot=from_snapshot)
    history = _history(planned, chosen, value, where, stretch)
    events = _folded(history, stretch, where, last, console)
    if json:
        for event in events:
            sys.stdout.write(event_json(event) + "\n")
        if history.stopped is not None:
            Console(stderr=True, highlight=False).print(str(history.stopped), markup=False, soft_wrap=True)
        return
    console.print(f"{key} is in partition {stretch.partition} of stage {chosen.name}", markup=False)
    _show(console, events, history, stretch)


def events_table(events: Sequence[Event]) -> Table:
    """A line for each message, with a line for each state and each result in it."""
    from rich import box
    from rich.markup import escape
    from rich.table import Table

    from bettong.cli.dead_letter_views import moment
    from bettong.worker.history import EXPIRED

    table = Table(box=box.HORIZONTALS, show_lines=True, header_style="dim", pad_edge=False)
    for column in ("offset", "taken in (UTC)", "message", "state", "leads to"):
        table.add_column(column, justify="right" if column == "offset" else "left", overflow="fold")
    for event in events:
        states = [f"{step.computation}: {_cut(step.before)} -> {_cut(step.after)}" for step in event.steps]
        results = [f"{target}: {_cut_text(message)}" for target, message in event.outputs]
        results += [f"{policy} of {computation}: {reason}" for computation, policy, reason in event.failures]
        message = f"{_cut_text(event.message)}\n{event.origin}, frame {event.sequence} [{event.index}]"
        if event.verdict == EXPIRED:
            message = f"(none: {event.origin})"
            results.append("its time to live is over")
        elif event.verdict != "taken":
            results.append(f"skipped: a {event.verdict}")
        table.add_row(
            str(event.offset),
            moment(event.time_ns).replace(" ", "\n"),
            escape(message),
            escape("\n".join(states)),
            escape("\n".join(results)),
        )
    return table


def event_json(event: Event) -> str:
    """All there is of an event, as one line."""
    from bettong.cli.dead_letter_views import moment

    values = {
        "offset": event.offset,
        "origin": event.origin,
        "sequence": event.sequence,
        "index": event.index,
        "taken_in": moment(event.time_ns),
        "verdict": event.verdict,
        "message": json_module.loads(event.message),
        "states": [
            {"computation": step.computation, "before": step.before, "after": step.after}
            for step in event.steps
        ],
        "outputs": [
            {"to": target, "message": json_module.loads(message)} for target, message in event.outputs
        ],
        "failures": [
            {"computation": computation, "on_error": policy, "reason": reason}
            for computation, policy, reason in event.failures
        ],
    }
    return json_module.dumps(values, ensure_ascii=False)


def _show(console: Console, events: Sequence[Event], history: KeyHistory, stretch: Stretch) -> None:
    begun = f"from the snapshot at {stretch.first}" if stretch.snapshot is not None else "from the beginning"
    console.print(
        f"folded {begun} up to offset {history.next_offset}; the last {len(events):,} message(s) of the key:",
        soft_wrap=True,
    )
    if events:
        console.print(events_table(events))
    if history.stopped is not None:
        console.print(f"the fold stops here: {history.stopped}", style="red", markup=False, soft_wrap=True)


def _stretch(
    plan: Plan, stage: Stage, key: KeyValue, where: Locations, *, until: int | None, from_snapshot: bool
) -> Stretch:
    from bettong.edges.kafka_log import LogAdmin
    from bettong.edges.redis_store import RedisStore
    from bettong.edges.snapshot_stores import snapshot_store
    from bettong.errors import LogTruncatedError
    from bettong.routing import partition_of
    from bettong.topics import stage_topic

    topic = stage_topic(plan.application, stage.name)
    with LogAdmin(where.kafka) as admin:
        beginnings, ends = admin.beginnings([topic]), admin.ends([topic])
    partition = partition_of(key, len(ends))
    begin, end = beginnings[topic, partition], ends[topic, partition]
    stop = end if until is None else until
    if stop > end:
        raise typer.BadParameter(
            f"--until {stop}: the log of partition {partition} of stage {stage.name}, where the key is, ends at {end}"
        )
    if begin == 0 and not from_snapshot:
        return Stretch(topic, partition, len(ends), 0, stop, None)
    with RedisStore(where.redis, plan.application) as redis:
        store = snapshot_store(where.snapshots, plan.application, redis)
        kept = _snapshot(store, stage, partition, range(begin, stop + 1), newest=from_snapshot)
        if kept is not None:
            return Stretch(topic, partition, len(ends), kept[0], stop, kept[1])
        if begin == 0:
            return Stretch(topic, partition, len(ends), 0, stop, None)
        known = store.increments(stage.name, partition)
        offsets = ", ".join(str(each[-1].offset) for each in reversed(chains(known))) or "none"
    raise LogTruncatedError(
        f"partition {partition} of stage {stage.name}: its log begins at {begin}, and no snapshot lies between there"
        f" and {stop} (there are: {offsets}): how the state came about cannot be told any more; give a higher --until"
    )


def _snapshot(
    store: SnapshotStore, stage: Stage, partition: int, wanted: range, *, newest: bool
) -> tuple[int, list[bytes]] | None:
    """The newest or oldest snapshot whose offset is wanted, as the increments that make it."""
    usable = [each for each in chains(store.increments(stage.name, partition)) if each[-1].offset in wanted]
    for chain in usable if newest else reversed(usable):
        kept = read_chain(store, stage.name, partition, chain)
        if kept is not None:  # else it was replaced by newer ones meanwhile
            return chain[-1].offset, kept
    return None


def _history(plan: Plan, stage: Stage, key: KeyValue, where: Locations, stretch: Stretch) -> KeyHistory:
    from bettong.worker.history import KeyHistory
    from bettong.worker.partition import Assignment
    from bettong.worker.stage_program import program

    assignment = Assignment(
        application=plan.application,
        partition=stretch.partition,
        partitions=stretch.partitions,
        frame_bytes_max=where.frame_bytes_max,
    )
    ready = program(stage, compiled=where.compiled, cache=where.kernel_cache, state_key=where.state_key)
    history = KeyHistory(ready, assignment, key, _exclusions(plan, stage, where, stretch.partition))
    if stretch.snapshot is not None:
        history.restore(stretch.snapshot)
    return history


def _exclusions(plan: Plan, stage: Stage, where: Locations, partition: int) -> Mapping[int, Exclusion]:
    """What the partition's fold leaves out. A processor of an older version has made no topic for that."""
    from bettong.edges.exclusion_log import ExclusionLog
    from bettong.edges.kafka_log import LogAdmin
    from bettong.topics import exclusions_topic

    with LogAdmin(where.kafka) as admin:
        if not admin.topics(exclusions_topic(plan.application)):
            return {}
    log = ExclusionLog(where.kafka, plan.application, frame_bytes_max=where.frame_bytes_max)
    try:
        log.refresh()
    finally:
        log.close()
    return log.known(stage.name, partition)


def _folded(
    history: KeyHistory, stretch: Stretch, where: Locations, last: int, console: Console
) -> list[Event]:
    from rich.progress import Progress

    from bettong.cli.log_stretch import stretch as records

    events: deque[Event] = deque(maxlen=last)
    partition = (stretch.topic, stretch.partition)
    shown = Progress(console=console, transient=True, disable=not console.is_terminal)
    with _interrupts_end(), shown as progress:
        task = progress.add_task("folding", total=stretch.until - stretch.first)
        for record in records(
            where.kafka,
            {partition: stretch.first},
            {partition: stretch.until},
            frame_bytes_max=where.frame_bytes_max,
        ):
            events.extend(history.fold(record.offset, record.value))
            progress.advance(task)
            if history.stopped is not None:
                break
    return list(events)


@contextmanager
def _interrupts_end() -> Iterator[None]:
    """Control-C ends the process: raised within a user's function it would be taken for its message's failure."""
    before = signal.signal(signal.SIGINT, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _cut(state: object) -> str:
    return "nothing" if state is None else _cut_text(json_module.dumps(state, ensure_ascii=False))


def _cut_text(text: str) -> str:
    return text if len(text) <= _CELL_CHARACTERS else text[:_CELL_CHARACTERS] + " ..."
