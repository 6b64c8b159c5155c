"""`bettong send`: feeds a source from a file."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bettong.cli.directory import DIRECTORY, HERE
from bettong.services import SENDER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console

    from bettong.client.message_files import Portion

_SOURCE = typer.Argument(metavar="SOURCE", help="The source to feed.")
_FILE = typer.Argument(
    metavar="FILE", exists=True, dir_okay=False, readable=True, help="The file of messages."
)
_FORMAT = typer.Option(
    "--format",
    help="How messages lie in the file; by default the ending decides."
    " binary (.bin .msg .dat): u32 length, big-endian, then the message. lines (.txt .log): one a line, as bytes"
    " or as the one text field. json (.json .jsonl): an object a line. csv: a header, then rows. parquet (.pq).",
)
_TO = typer.Option("--to", metavar="HOST:PORT", help="The sender; by default that of the suite in --dir.")
_STREAM = typer.Option(
    metavar="NAME",
    help="Name this stream, so that sending the same file again, with the same --frame, goes on where it was and"
    " adds nothing twice: frames are numbered by their last message. By default each call is a stream of its own."
    " Another file needs another name: under one that was used, messages below the number reached are left out.",
)
_FRAME = typer.Option(
    min=1, max=1_000_000, metavar="N", help="Messages a frame, fewer where they would be too large."
)


def send(
    source: Annotated[str, _SOURCE],
    file: Annotated[Path, _FILE],
    *,
    format_: Annotated[Literal["binary", "lines", "json", "csv", "parquet"] | None, _FORMAT] = None,
    to: Annotated[str | None, _TO] = None,
    directory: Annotated[Path, DIRECTORY] = HERE,
    stream: Annotated[str | None, _STREAM] = None,
    frame: Annotated[int, _FRAME] = 4096,
) -> None:
    """Send a file of messages to a source, and return when all of it is durable."""
    from rich.console import Console

    from bettong.client.message_files import Format, Wanted, format_of, portions
    from bettong.client.portion_sending import send_portions
    from bettong.client.sender import Sender
    from bettong.local.record import address_of

    kind = Format(format_) if format_ is not None else format_of(file)
    console = Console(highlight=False)
    begun = time.monotonic()
    with Sender(to or address_of(SENDER.name, directory), source, stream) as sender:
        info = sender.source
        most = min(frame, info.frame_messages_max or frame)
        wanted = Wanted(info.schema, info.takes_rows, messages_max=most, bytes_max=info.frame_bytes_max)
        if sender.acknowledged:
            console.print(
                f"{stream}: going on after {sender.acknowledged:,} messages that are durable already"
            )
        count = send_portions(sender, _shown(portions(file, kind, wanted), file.name, console))
        sender.flush()
        refused = sender.dead_letters
    seconds = time.monotonic() - begun
    console.print(f"{count:,} messages to {source} in {seconds:.1f} s, {count / max(seconds, 1e-9):,.0f}/s")
    if refused:
        console.print(f"[yellow]{refused:,} of them could not be decoded[/yellow]: bettong tail dead-letters")


def _shown(found: Iterator[Portion], name: str, console: Console) -> Iterator[Portion]:
    """Passes portions on, with a progress bar on a terminal."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn(name, markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[count]:,} messages"),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task(name, total=1.0, count=0)
        for portion in found:
            yield portion
            progress.update(task, completed=portion.done, count=portion.last)
