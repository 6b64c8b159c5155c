"""`bettong tail`: prints the results of a sink as they come."""

from __future__ import annotations

import os
import sys
from contextlib import contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bettong.cli.directory import DIRECTORY, HERE
from bettong.services import RECEIVER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from bettong.client.subscriber import Subscriber

# A receiver that restarts is back sooner.
_AWAY_S = 2.0

_SINK = typer.Argument(
    metavar="SINK", help="The sink to read; `dead-letters` for what could not be processed."
)
_RECEIVER = typer.Option(metavar="HOST:PORT", help="The receiver; by default that of the suite in --dir.")
_START = typer.Option("--from", help="Begin with the oldest result, or with the next new one.")
_COUNT = typer.Option(min=1, metavar="N", help="End after N messages; by default never.")


def tail(
    sink: Annotated[str, _SINK],
    *,
    receiver: Annotated[str | None, _RECEIVER] = None,
    directory: Annotated[Path, DIRECTORY] = HERE,
    start: Annotated[Literal["earliest", "latest"], _START] = "earliest",
    count: Annotated[int | None, _COUNT] = None,
) -> None:
    """Print the results of a sink, one a line: text as it is, other bytes in hexadecimal. Ctrl-C ends it."""
    from bettong.client.subscriber import Subscriber
    from bettong.local.record import address_of

    target = receiver or address_of(RECEIVER.name, directory)
    left = count
    with Subscriber(target, sink, start=start) as results, _saying_why(results):
        for result in results:
            messages = result.messages if left is None else result.messages[:left]
            try:
                for message in messages:
                    sys.stdout.write(shown(message) + "\n")
                sys.stdout.flush()
            except BrokenPipeError:  # the reader has ended: `bettong tail SINK | head`
                os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
                return
            if left is not None:
                left -= len(messages)
                if left == 0:
                    return


@contextmanager
def _saying_why(results: Subscriber) -> Iterator[None]:
    """Inside, prints on stderr that no results come because the receiver is away, once each time."""
    over = Event()

    def watch() -> None:
        said = ""
        while not over.wait(_AWAY_S):
            why = results.hindrance
            if why and not said:
                typer.echo(f"waiting: {why}", err=True)
            said = why

    watching = Thread(target=watch, name="saying why", daemon=True)
    watching.start()
    try:
        yield
    finally:
        over.set()
        watching.join()


def shown(message: bytes) -> str:
    """A message on one line."""
    try:
        text = message.decode()
    except UnicodeDecodeError:
        return message.hex()
    return text if text.isprintable() else message.hex()
