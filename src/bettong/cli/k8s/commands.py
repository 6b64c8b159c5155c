"""`bettong k8s`: operates a release of the chart from a user's machine."""

from __future__ import annotations

import time
from typing import Annotated

import typer

from bettong.cli.exit_codes import NOT_RUNNING
from bettong.cli.k8s.flags import (
    ComponentFlag,
    ContextFlag,
    NamespaceFlag,
    ReleaseArgument,
    ReleaseFlag,
    WaitFlag,
)
from bettong.cli.k8s.trial import try_out
from bettong.cli.k8s.waiting import await_all, connected, warn

k8s = typer.Typer(help="See, scale, restart and read a release on Kubernetes; try an application out.")
k8s.command("try")(try_out)


@k8s.command()
def status(
    release: ReleaseArgument = None,
    *,
    namespace: NamespaceFlag = None,
    context: ContextFlag = None,
    lag: Annotated[
        bool, typer.Option("--lag", help="Also ask the driver for the lag; needs pods/exec.")
    ] = False,
    json: Annotated[
        bool, typer.Option("--json", help="Print one JSON object, for scripts: see docs/kubernetes.md.")
    ] = False,
) -> None:
    """Show pods and what is wrong with them. Exit code 0: all are ready; 7: some are not."""
    from rich.console import Console

    from bettong.cli.fitting_tables import print_fitting
    from bettong.cli.k8s.status_form import release_form
    from bettong.cli.k8s.tables import pods_table, workloads_line
    from bettong.cluster import acting
    from bettong.cluster.pods import rows
    from bettong.cluster.rolling import progress

    console = Console(highlight=False)
    with connected(context, namespace) as cluster:
        found = acting.deployed(cluster, release)
        _, workers = acting.workers_of(cluster, found.workloads)
        waiting = acting.lag(cluster, found.pods) if lag else None
    how = [progress(each) for each in found.workloads]
    form = release_form(
        found.release, cluster.namespace, rows(found.pods), how, workers, waiting, found.warnings()
    )
    if json:
        typer.echo(form.model_dump_json(indent=2))
        raise typer.Exit(0 if form.all_ready else NOT_RUNNING)
    console.print(f"[bold]{found.release}[/bold] in namespace {cluster.namespace}", soft_wrap=True)
    print_fitting(console, pods_table(rows(found.pods), found.release, time.time()))
    for text in (workloads_line(how), workers.line(), waiting):
        if text is not None:
            console.print(text, markup=False, soft_wrap=True)
    warn(console, found)
    if not form.all_ready:
        raise typer.Exit(NOT_RUNNING)


@k8s.command()
def scale(
    count: Annotated[int, typer.Argument(metavar="N", min=0, max=4096, help="The number of workers to run.")],
    *,
    release: ReleaseFlag = None,
    namespace: NamespaceFlag = None,
    context: ContextFlag = None,
    timeout: WaitFlag = 300.0,
) -> None:
    """Set the number of workers, and wait until they are ready. Exit code 7: they are not ready in time.

    Refused beyond the number of partitions, and where an autoscaler or the values of the release would undo it.
    """
    from rich.console import Console

    from bettong.cluster import acting

    console = Console(highlight=False)
    with connected(context, namespace) as cluster:
        name, _ = acting.found(cluster, release)
        before = acting.scale(cluster, name, count)
        for line in before.change_lines(count):
            console.print(line, soft_wrap=True)
        if timeout:
            await_all(console, cluster, name, [before.name], timeout, deployments=False)


@k8s.command()
def rollout(
    release: ReleaseArgument = None,
    *,
    component: ComponentFlag = None,
    only_status: Annotated[
        bool, typer.Option("--status", help="Restart nothing; show the progress.")
    ] = False,
    namespace: NamespaceFlag = None,
    context: ContextFlag = None,
    timeout: WaitFlag = 600.0,
) -> None:
    """Restart all components, or one, each after the one before is ready: receiver, master, worker, driver, senders.

    Nothing is lost: clients resend unacknowledged frames, and processing resumes from snapshots. Exit code 7: a
    component is not ready in time; those after it are not restarted.
    """
    from rich.console import Console

    from bettong.cluster import acting, rolling
    from bettong.cluster.objects import name_of

    console = Console(highlight=False)
    with connected(context, namespace) as cluster:
        found = acting.deployed(cluster, release)
        workloads = rolling.ordered(found.workloads, component)
        if only_status:
            how = [rolling.progress(each) for each in workloads]
            for each in how:
                console.print(each.line(), soft_wrap=True)
            wrong = warn(console, found)
            raise typer.Exit(0 if all(each.done for each in how) and not wrong else NOT_RUNNING)
        for workload in workloads:
            acting.restart(cluster, workload)
            if timeout:
                await_all(console, cluster, found.release, [name_of(workload)], timeout)
            else:
                console.print(f"{name_of(workload)}: restarts", soft_wrap=True)


@k8s.command()
def logs(
    release: ReleaseArgument = None,
    *,
    component: ComponentFlag = None,
    follow: Annotated[
        bool, typer.Option("--follow", "-f", help="Follow until Ctrl-C, new pods too.")
    ] = False,
    previous: Annotated[
        bool,
        typer.Option("--previous", "-p", help="Print the logs from before the containers' last restart."),
    ] = False,
    since: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Only the last 90s, 10m, 2h or 1d; with --follow by default 1m."),
    ] = None,
    namespace: NamespaceFlag = None,
    context: ContextFlag = None,
) -> None:
    """Print the logs of all pods of a release, or of a component, merged by time."""
    from rich.console import Console

    from bettong.cli.k8s.tables import Printer
    from bettong.cluster import acting
    from bettong.cluster.following import Follower
    from bettong.cluster.log_lines import seconds
    from bettong.cluster.objects import COMPONENT, RELEASE
    from bettong.errors import ClusterError, SettingsError

    if follow and previous:
        raise SettingsError(
            "--follow and --previous exclude each other: an ended container writes no more logs"
        )
    since_s = seconds(since) if since is not None else 60 if follow else None
    printer = Printer(Console(highlight=False))
    with connected(context, namespace) as cluster:
        name, _ = acting.found(cluster, release)
        if follow:
            for line in Follower(cluster, name, component, since_s).lines():
                printer.print(name, line)
        selector = f"{RELEASE}={name}" + (f",{COMPONENT}={component}" if component else "")
        pods = cluster.list("pods", labels=selector)
        containers = acting.containers(pods, component, restarted=previous)
        if not containers:
            what = "has restarted" if previous else "has started"
            raise ClusterError(f"no pod of {name}{f', component {component},' if component else ''} {what}")
        for line in acting.logs(cluster, containers, since_s=since_s, previous=previous):
            printer.print(name, line)
