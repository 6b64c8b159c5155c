"""Shared by the commands of `bettong k8s`: the cluster, waiting with a progress bar, and warnings."""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from bettong.cli.exit_codes import NOT_RUNNING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console

    from bettong.cluster.acting import Deployed
    from bettong.cluster.api import Cluster
    from bettong.cluster.rolling import RolloutProgress


@contextmanager
def connected(context: str | None, namespace: str | None) -> Iterator[Cluster]:
    """The cluster of a command, closed at the end."""
    from bettong.cluster.api import Cluster

    with Cluster(context=context, namespace=namespace) as cluster:
        yield cluster


def warn(console: Console, found: Deployed) -> bool:
    """Prints warnings; returns whether there are any."""
    from rich.markup import escape

    wrong = found.warnings()
    for text in wrong:
        console.print(f"[yellow]{escape(text)}[/yellow]", soft_wrap=True)
    return bool(wrong)


def await_all(
    console: Console,
    cluster: Cluster,
    release: str,
    names: list[str],
    timeout: float,
    *,
    deployments: bool = True,
) -> None:
    """Waits for workloads, with a bar on a terminal. Ends the command with 7, and says why, when one is not ready."""
    from bettong.cluster import acting

    for name in names:
        with bar(console, name) as on_progress:
            done = acting.awaited(
                cluster, release, name, seconds_max=timeout, on_progress=on_progress, deployments=deployments
            )
        if not done:
            console.print(f"[red]{name} is not ready after {timeout:g} s[/red]", soft_wrap=True)
            warn(console, acting.deployed(cluster, release, deployments=deployments))
            raise typer.Exit(NOT_RUNNING)
        console.print(f"{name}: ready", soft_wrap=True)


@contextmanager
def bar(console: Console, name: str) -> Iterator[Callable[[RolloutProgress], None]]:
    """A progress bar of a workload; yields the function that moves it."""
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn(name, markup=False),
        BarColumn(),
        TextColumn("{task.fields[line]}"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=console, transient=True, disable=not console.is_terminal) as shown:
        task = shown.add_task(name, total=1, line="")

        def on_progress(how: RolloutProgress) -> None:
            done = min(how.updated, how.ready)
            shown.update(task, total=max(1, how.wanted), completed=done, line=how.line().partition(": ")[2])

        yield on_progress
