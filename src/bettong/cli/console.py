"""`bettong console`: serves a web page about a running application, until the command ends."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from bettong.cli.directory import HERE
from bettong.cli.locations import DirectoryFlag, KafkaFlag, RedisFlag
from bettong.services import CONSOLE, CONSOLE_PORT

_APPLICATION = typer.Argument(
    metavar="APP.py",
    help="The application: a Python file, or file:name. By default that of the suite in --dir.",
)
_LISTEN = typer.Option(
    metavar="HOST:PORT",
    help=f"Address of the page; by default BETTONG_CONSOLE_LISTEN, else 127.0.0.1:{CONSOLE_PORT}.",
)
_ALLOW_CHANGES = typer.Option(
    "--allow-changes",
    help="Let people whose token says `change = true` send dead letters again, scale workers and reset states from the"
    " page; needs BETTONG_TOKENS.",
)
_SENDER = typer.Option(
    metavar="HOST:PORT",
    help="Where dead letters are sent again; by default BETTONG_CONSOLE_SENDER, else the sender of the suite in --dir.",
)


def console(
    application: Annotated[str | None, _APPLICATION] = None,
    *,
    listen: Annotated[str | None, _LISTEN] = None,
    allow_changes: Annotated[bool, _ALLOW_CHANGES] = False,
    sender: Annotated[str | None, _SENDER] = None,
    kafka: KafkaFlag = None,
    redis: RedisFlag = None,
    directory: DirectoryFlag = HERE,
) -> None:
    """Serve a page that shows what runs: rates, lag, latency, partitions, keys, dead letters.

    It changes nothing without --allow-changes.
    """
    from bettong.cli.services import found
    from bettong.config.service import PREFIX
    from bettong.errors import SettingsError
    from bettong.local.record import find

    record = find(directory)
    if application is None and record is None and f"{PREFIX}APPLICATION" not in os.environ:
        raise SettingsError(
            f"nothing runs in {directory}: start it with `bettong up APP.py`, or name the application's file, and give"
            " the addresses with --kafka and --redis"
        )
    given = {
        "application": application or (record.application if record is not None else None),
        "console_listen": listen,
        "console_allow_changes": allow_changes or None,
        "console_sender": sender,
        "console_dir": str(directory),
        "kafka": kafka,
        "redis": redis,
    }
    main = found(CONSOLE).load()
    main({name: value for name, value in given.items() if value is not None})
