"""`bettong repartition`: another number of partitions for an application that is stopped."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from bettong.cli.check import APPLICATION
from bettong.cli.directory import HERE
from bettong.cli.locations import DirectoryFlag, KafkaFlag, RedisFlag

if TYPE_CHECKING:
    from rich.console import Console

    from bettong.application.plan import Plan
    from bettong.inspection.live.repartitioning import Repartitioned
    from bettong.inspection.locations import Locations

_PARTITIONS = typer.Option(min=1, max=4096, help="How many partitions there are to be.")
_BACK = typer.Option("--back", help="Take a change back that was interrupted before it counted.")
_DRY_RUN = typer.Option("--dry-run", help="Only check, and say what --partitions would do.")
_GIVE_UP = typer.Option(
    metavar="SOURCE/STREAM",
    help="A client that never comes back, or SOURCE/* for all of a source: frames without a receipt count as taken."
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
    """Give an application that is stopped another number of partitions, with all its states.

    Refused while any of it runs, or has anything left to fold. Interrupted at any point it goes on when it is run
    again, or --back takes it back as long as it does not count. Of a suite on this machine (`bettong down` first)
    Kafka and Redis are started, and stopped again. All services need BETTONG_PARTITIONS as it is then.
    """
    from rich.console import Console

    from bettong.inspection.live.application import loaded_plan
    from bettong.local.interrupts import terminable
    from bettong.local.rest import at_rest

    if (partitions is None) == (not back):
        raise typer.BadParameter("give --partitions N, or --back")
    if back and (dry_run or give_up):
        raise typer.BadParameter("--back takes a change back; --dry-run and --give-up are for --partitions")
    planned = loaded_plan(application)
    console = Console(highlight=False)
    with (
        terminable(),
        at_rest(application, planned.application, directory, kafka=kafka, redis=redis) as where,
    ):
        found = _done(planned, where, console, partitions, give_up or [], dry_run=dry_run)
    text = outcome_text(planned.application, found, back=back, dry_run=dry_run)
    console.print(text, markup=False, soft_wrap=True)


def _done(
    planned: Plan,
    where: Locations,
    console: Console,
    partitions: int | None,
    give_up: list[str],
    *,
    dry_run: bool,
) -> Repartitioned:
    """Does it, back where there is no number, and shows how far it is."""
    from rich.progress import Progress

    from bettong.inspection.live.parts_at_rest import PartsAtRest, repartitioning_of

    shown = Progress(console=console, transient=True, disable=not console.is_terminal)
    with shown as progress:
        task = progress.add_task("looking at the application", total=None)
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
    """What has come of it, in a line."""
    each = ", ".join(f"{stage} {count:,}" for stage, count in found.states.items())
    if back:
        return f"{application} has {found.new} partitions, as before; the change to {found.old} is taken back"
    if found.was_switched and dry_run:
        return f"would finish what was begun: {application} has {found.new} partitions instead of {found.old}"
    if found.old == found.new:
        return f"{application} has {found.new} partitions: there is nothing to do"
    if dry_run:
        return f"would give {application} {found.new} partitions instead of {found.old}; states: {each}"
    states = f" (states: {each})" if each else ""
    return (
        f"{application} has {found.new} partitions, it had {found.old}{states}; start it with"
        f" --partitions {found.new} (BETTONG_PARTITIONS={found.new}, `settings.partitions` of the chart)"
    )
