"""`bettong repartition`: changes the number of partitions of a stopped application."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bettong.cli.check import APPLICATION
from bettong.cli.directory import HERE
from bettong.cli.ending import terminable_command
from bettong.cli.locations import DirectoryFlag, KafkaFlag, RedisFlag

if TYPE_CHECKING:
    from rich.console import Console

    from bettong.application.plan import Plan
    from bettong.inspection.live.repartitioning import Repartitioned
    from bettong.inspection.locations import Locations

_PARTITIONS = typer.Option(min=1, max=4096, help="The new number of partitions.")
_BACK = typer.Option("--back", help="Undo a change that was interrupted before it took effect.")
_DRY_RUN = typer.Option("--dry-run", help="Only check, and print what --partitions would do.")
_GIVE_UP = typer.Option(
    metavar="SOURCE/STREAM",
    help="A client that never returns, or SOURCE/* for all of a source: its unacknowledged frames count as taken."
    " May be given several times.",
)


def repartition(
    application: Annotated[str, APPLICATION],
    *,
    partitions: Annotated[int | None, _PARTITIONS] = None,
    back: Annotated[bool, _BACK] = False,
    dry_run: Annotated[bool, _DRY_RUN] = False,
    give_up: Annotated[list[str] | None, _GIVE_UP] = None,
    kafka: KafkaFlag = None,
    redis: RedisFlag = None,
    directory: DirectoryFlag = HERE,
) -> None:
    """Change the number of partitions of a stopped application, with all its states.

    Refused while any of it runs, or has records left to fold. An interrupted change resumes when it is run again;
    --back undoes it as long as it has not taken effect. Of a suite on this machine (`bettong down` first) Kafka and
    Redis are started, and stopped again. Afterwards all services need the new BETTONG_PARTITIONS.
    """
    from rich.console import Console

    from bettong.inspection.live.application import loaded_plan
    from bettong.local.rest import at_rest

    if (partitions is None) == (not back):
        raise typer.BadParameter("give --partitions N, or --back")
    if back and (dry_run or give_up):
        raise typer.BadParameter("--back undoes a change; --dry-run and --give-up are for --partitions")
    planned = loaded_plan(application)
    console = Console(highlight=False)
    with (
        terminable_command(),
        at_rest(application, planned.application, directory, kafka=kafka, redis=redis) as where,
    ):
        found = _changed(planned, where, console, partitions, give_up or [], dry_run=dry_run)
    text = outcome_text(planned.application, found, back=back, dry_run=dry_run)
    console.print(text, markup=False, soft_wrap=True)


def _changed(
    planned: Plan,
    where: Locations,
    console: Console,
    partitions: int | None,
    give_up: list[str],
    *,
    dry_run: bool,
) -> Repartitioned:
    """Changes the number, or undoes the change where `partitions` is None, and shows the progress."""
    from rich.progress import Progress

    from bettong.inspection.live.parts_at_rest import PartsAtRest, repartitioning_of

    shown = Progress(console=console, transient=True, disable=not console.is_terminal)
    with shown as progress:
        task = progress.add_task("checking the application", total=None)
        last = ""

        def show(step: str, done: int = 0, total: int = 0) -> None:
            nonlocal last
            progress.update(task, description=step, completed=done, total=total or None)
            if not console.is_terminal and step != last:
                console.print(step, markup=False, soft_wrap=True)
            last = step

        with PartsAtRest(planned, where, on_wait=show) as parts:
            change = repartitioning_of(planned, where, parts, on_step=show)
            if partitions is None:
                return change.take_back()
            return change.change(partitions, given_up=give_up, dry_run=dry_run)


def outcome_text(application: str, found: Repartitioned, *, back: bool, dry_run: bool) -> str:
    """The outcome, in a line."""
    each = ", ".join(f"{stage} {count:,}" for stage, count in found.states.items())
    if back:
        return f"{application} has {found.new} partitions, as before; the change to {found.old} is undone"
    if found.was_switched and dry_run:
        return f"would finish the interrupted change: {application} has {found.new} partitions instead of {found.old}"
    if found.old == found.new:
        return f"{application} has {found.new} partitions: there is nothing to do"
    if dry_run:
        return f"would give {application} {found.new} partitions instead of {found.old}; states: {each}"
    states = f" (states: {each})" if each else ""
    return (
        f"{application} has {found.new} partitions, it had {found.old}{states}; start it with"
        f" --partitions {found.new} (BETTONG_PARTITIONS={found.new}, `settings.partitions` of the chart)"
    )
