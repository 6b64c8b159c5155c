"""The flags that say where the parts of an application are; `bettong.local.locations` finds the rest."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from bettong.cli.directory import DIRECTORY


def without_password_flag(url: str | None) -> str | None:
    """Returns the URL of a flag. Raises BadParameter when it holds a password."""
    from bettong.config.endpoints import without_password

    try:
        return without_password(url)
    except ValueError as error:
        raise typer.BadParameter(str(error)) from None


KafkaFlag = Annotated[
    str | None,
    typer.Option(
        "--kafka",
        metavar="HOST:PORT",
        help="Kafka; by default that of the suite in --dir, else BETTONG_KAFKA.",
    ),
]
RedisFlag = Annotated[
    str | None,
    typer.Option(
        "--redis",
        callback=without_password_flag,
        metavar="URL",
        help="Redis; by default that of the suite in --dir, else BETTONG_REDIS.",
    ),
]
DirectoryFlag = Annotated[Path, DIRECTORY]
