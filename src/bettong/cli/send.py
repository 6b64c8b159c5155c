"""`bettong send`: feeds sources from files."""

from __future__ import annotations

import time
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bettong.cli.directory import DIRECTORY, HERE
from bettong.services import SENDER

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.console import Console
    from rich.progress import Progress

    from bettong.client.message_files import Format, Portion
    from bettong.client.sender import Sender

_SOURCES_MAX = 16

_FILES = typer.Argument(
    metavar="SOURCE FILE [SOURCE FILE]...",
    help="The source to feed, and the file of messages. Several pairs are sent side by side, and nothing before all"
    " streams are open: so event time waits for each of them, and no message is late because its file came second.",
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
    files: Annotated[list[str], _FILES],
    *,
    format_: Annotated[Literal["binary", "lines", "json", "csv", "parquet"] | None, _FORMAT] = None,
    to: Annotated[str | None, _TO] = None,
    directory: Annotated[Path, DIRECTORY] = HERE,
    stream: Annotated[str | None, _STREAM] = None,
    frame: Annotated[int, _FRAME] = 4096,
) -> None:
    """Send files of messages to sources, and return when all of it is durable."""
    from rich.console import Console

    from bettong.client.message_files import Format, format_of
    from bettong.client.sender import Sender
    from bettong.local.record import address_of

    pairs = _pairs(files)
    kinds = [Format(format_) if format_ is not None else format_of(path) for _, path in pairs]
    console = Console(highlight=False)
    target = to or address_of(SENDER.name, directory)
    feeds: list[_Feed] = []
    with _progress(console) as progress, ExitStack() as leaving:
        for (source, path), kind in zip(pairs, kinds, strict=True):
            sender = Sender(target, source, stream)
            leaving.callback(sender.abandon)  # harmless where it has ended well
            feeds.append(_Feed(sender, path, kind, frame))
        for feed in feeds:
            if durable := feed.sender.acknowledged:
                name = stream if len(feeds) == 1 else f"{feed.sender.source.name}/{stream}"
                console.print(f"{name}: going on after {durable:,} messages that are durable already")
        results = _sent(feeds, progress, console)
    for feed, (count, seconds) in zip(feeds, results, strict=True):
        name = feed.sender.source.name
        console.print(f"{count:,} messages to {name} in {seconds:.1f} s, {count / max(seconds, 1e-9):,.0f}/s")
        if refused := feed.sender.dead_letters:
            console.print(
                f"[yellow]{refused:,} of them could not be decoded[/yellow]: bettong tail dead-letters"
            )


@dataclass(frozen=True)
class _Feed:
    """A file, and the open stream that it goes to."""

    sender: Sender
    file: Path
    kind: Format
    frame: int

    def send(self, progress: Progress) -> tuple[int, float]:
        """Sends the file and ends the stream; how many messages it has, and how many seconds it took."""
        from bettong.client.message_files import Wanted, portions
        from bettong.client.portion_sending import send_portions

        begun, info = time.monotonic(), self.sender.source
        most = min(self.frame, info.frame_messages_max or self.frame)
        wanted = Wanted(info.schema, info.takes_rows, messages_max=most, bytes_max=info.frame_bytes_max)
        with self.sender:
            found = portions(self.file, self.kind, wanted)
            count = send_portions(self.sender, _shown(found, self.file.name, progress))
            self.sender.flush()
        return count, time.monotonic() - begun


def _sent(feeds: list[_Feed], progress: Progress, console: Console) -> list[tuple[int, float]]:
    """What `send` of each gives. The first that fails ends the others, and is raised."""
    with ThreadPoolExecutor(len(feeds), "send") as threads:
        sent = [threads.submit(feed.send, progress) for feed in feeds]
        try:
            done = wait(sent, return_when=FIRST_EXCEPTION).done
            return [each.result() for each in (sent if len(done) == len(sent) else done)]
        except BaseException:
            for feed in feeds:  # so that no thread goes on, for which the pool would wait
                feed.sender.abandon()
            if len(feeds) > 1:
                _report_durable(feeds, console)
            raise


def _report_durable(feeds: list[_Feed], console: Console) -> None:
    """How much of each file need not be sent again."""
    for each in feeds:
        source, durable = each.sender.source.name, each.sender.acknowledged
        console.print(f"{each.file.name}: {durable:,} messages to {source} are durable")


def _pairs(files: list[str]) -> list[tuple[str, Path]]:
    """Sources, each with its file. Raises BadParameter."""
    if len(files) % 2:
        raise typer.BadParameter(f"{files[-1]!r} has no file: give pairs, SOURCE FILE [SOURCE FILE]...")
    if len(files) > 2 * _SOURCES_MAX:
        raise typer.BadParameter(f"{len(files) // 2} pairs; at most {_SOURCES_MAX} are sent at once")
    pairs = [(source, Path(file)) for source, file in zip(files[::2], files[1::2], strict=True)]
    sources = [source for source, _ in pairs]
    for source, path in pairs:
        if sources.count(source) > 1:
            raise typer.BadParameter(
                f"source {source!r} is there twice: a stream has one order, so send its files one after the other"
            )
        if not path.is_file():
            raise typer.BadParameter(f"{str(path)!r}, for source {source!r}, is no file")
    return pairs


def _progress(console: Console) -> Progress:
    """A bar for each file, on a terminal."""
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TaskProgressColumn(),
        TextColumn("{task.fields[count]:,} messages"),
        TimeRemainingColumn(),
    )
    return Progress(*columns, console=console, transient=True, disable=not console.is_terminal)


def _shown(found: Iterator[Portion], name: str, progress: Progress) -> Iterator[Portion]:
    """Passes portions on, and shows how far they are."""
    task = progress.add_task(name, total=1.0, count=0)
    for portion in found:
        yield portion
        progress.update(task, completed=portion.done, count=portion.last)
