"""Arguments and flags that the commands of `bettong k8s` share."""

from __future__ import annotations

from typing import Annotated

import typer

from bettong.services import SERVICES

_COMPONENTS = [name for each in SERVICES.values() for name in each.components]

ReleaseArgument = Annotated[
    str | None,
    typer.Argument(metavar="[RELEASE]", help="The helm release; may be left out if there is only one."),
]
ReleaseFlag = Annotated[
    str | None,
    typer.Option("--release", "-r", metavar="NAME", help="The helm release, if there are several."),
]
NamespaceFlag = Annotated[
    str | None,
    typer.Option("--namespace", "-n", metavar="NAME", help="The namespace; by default that of the context."),
]
ContextFlag = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="The context of the kubeconfig; by default the current one."),
]
ComponentFlag = Annotated[
    str | None,
    typer.Option("--component", "-c", metavar="NAME", help=f"One of {', '.join(_COMPONENTS)}."),
]
WaitFlag = Annotated[
    float,
    typer.Option(
        "--timeout", min=0.0, metavar="S", help="Wait at most S seconds until all is ready; 0: do not wait."
    ),
]
