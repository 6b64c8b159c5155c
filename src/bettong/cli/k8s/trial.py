"""`bettong k8s try`: tries an application out on a cluster, with its own Kafka and Redis."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from bettong.cli.ending import terminable_command
from bettong.cli.k8s.flags import ContextFlag, NamespaceFlag, WaitFlag
from bettong.cli.k8s.waiting import await_all, connected
from bettong.services import RECEIVER, SENDER

if TYPE_CHECKING:
    from rich.console import Console

    from bettong.cluster.api import Cluster
    from bettong.cluster.trial import ClusterTrial

_POLL_S = 5.0  # between two checks whether something went wrong
_IMAGES = typer.Option(
    metavar="FOLDER:TAG", help="The images: FOLDER/sender:TAG and so on; by default the chart's."
)


def try_out(
    application: Annotated[
        Path, typer.Argument(metavar="APP.py", exists=True, dir_okay=False, help="The application's file.")
    ],
    *,
    namespace: NamespaceFlag = None,
    context: ContextFlag = None,
    images: Annotated[str | None, _IMAGES] = None,
    values: Annotated[
        list[Path] | None, typer.Option("--values", "-f", metavar="FILE", help="More values of the chart.")
    ] = None,
    chart: Annotated[
        Path | None, typer.Option(metavar="FOLDER", help="The chart; by default this tree's.")
    ] = None,
    keep: Annotated[
        bool, typer.Option("--keep", help="Keep it running, and return when all is ready.")
    ] = False,
    timeout: WaitFlag = 600.0,
) -> None:
    """Run an application in a namespace of its own, with Kafka and Redis, until Ctrl-C; then remove all of it.

    A second run with the same application updates what --keep has left.
    """
    from rich.console import Console

    from bettong.cluster.helm import chart_of
    from bettong.cluster.trial import ClusterTrial, install, namespace_of, open_namespace, remove
    from bettong.inspection.live.application import loaded_plan

    console = Console(highlight=False)
    # Report its mistakes here, and not in pods' logs.
    name = loaded_plan(str(application)).application
    wanted = ClusterTrial(
        application.resolve(),
        namespace or namespace_of(name),
        chart_of(chart),
        context,
        images,
        tuple(values or ()),
    )
    with connected(context, wanted.namespace) as cluster:
        own = open_namespace(cluster)
        try:
            with terminable_command():
                install(wanted)
                _await(console, cluster, timeout)
                _describe(console, wanted, own=own, kept=keep)
                if keep:
                    return
                _watch(console, cluster)
        finally:
            if not keep:
                console.print("removing it ...")
                remove(wanted, cluster, own=own)


def _await(console: Console, cluster: Cluster, timeout: float) -> None:
    from bettong.cluster import acting
    from bettong.cluster.objects import name_of
    from bettong.cluster.trial import RELEASE

    names = [name_of(each) for each in acting.deployed(cluster, RELEASE).workloads]
    if timeout:
        await_all(console, cluster, RELEASE, names, timeout)


def _describe(console: Console, wanted: ClusterTrial, *, own: bool, kept: bool) -> None:
    """Prints where it runs, how to send it messages, and how to remove it."""
    from bettong.cluster.trial import RELEASE

    there = f"-n {wanted.namespace}" + (f" --context {wanted.context}" if wanted.context else "")
    name = f"{RELEASE}-bettong"
    console.print(
        f"{wanted.application.name} runs in namespace {wanted.namespace}; from other terminals:",
        soft_wrap=True,
    )
    lines = [
        *(
            f"kubectl port-forward {there} service/{name}-{each.name} {each.grpc_port}"
            for each in (SENDER, RECEIVER)
        ),
        f"bettong send SOURCE FILE --to 127.0.0.1:{SENDER.grpc_port}",
        f"bettong tail SINK --receiver 127.0.0.1:{RECEIVER.grpc_port}",
        f"bettong k8s status {there}",
        f"bettong k8s logs {there} --follow",
    ]
    if kept:
        drop = f"; kubectl delete namespace {wanted.namespace}" if own else ""
        lines.append(f"helm uninstall {RELEASE} {there.replace('--context', '--kube-context')}{drop}")
    for text in lines:
        console.print(f"  {text}", markup=False, soft_wrap=True)
    if not kept:
        console.print("Ctrl-C removes it")


def _watch(console: Console, cluster: Cluster) -> None:
    """Prints each warning once, until an interrupt."""
    from rich.markup import escape

    from bettong.cluster import acting
    from bettong.cluster.trial import RELEASE

    shown: set[str] = set()
    while True:
        for text in acting.deployed(cluster, RELEASE).warnings():
            if text not in shown:
                shown.add(text)
                console.print(f"[yellow]{escape(text)}[/yellow]", soft_wrap=True)
        time.sleep(_POLL_S)
