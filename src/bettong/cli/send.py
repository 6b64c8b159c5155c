"""`bettong send`: feeds sources from files."""

from __future__ import annotations

import threading
from concurrent.futures import FIRST_EXCEPTION, ThreadPoolExecutor, wait
from contextlib import ExitStack
from io import BufferedReader, FileIO
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from bettong.cli.directory import DIRECTORY, HERE
from bettong.services import SENDER

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console
    from rich.progress import Progress, TaskID

    from bettong.client.file_feed import FileFeed
    from bettong.client.message_files import Format
    from bettong.client.sender import Sender

_SOURCES_MAX = 16
_STANDARD_INPUT = Path("-")
_POLL_S = 0.25  # between two updates of the progress
# How to resume after a failure or an interrupt.
_NAMED = "the same command, with the same input, resumes after them"
_BY_CONTENT = (
    "the same command, with the same file, resumes after them; a changed file is a new stream, so remove them"
    " from it"
)
_UNNAMED = (
    "to resume after them, remove them from the input: sent again, they would be added twice. A stream with a name"
    " (--stream) resumes by itself"
)

_FILES = typer.Argument(
    metavar="SOURCE FILE [SOURCE FILE]...",
    help="The source to feed, and the file of messages, or - for standard input (with --format). Several pairs are"
    " sent concurrently, once all streams are open: event time then waits for each of them, and no message is late"
    " because its file came second.",
)
_FORMAT = typer.Option(
    "--format",
    help="The file's format; by default from its ending."
    " binary (.bin .msg .dat): u32 length, big-endian, then the message. lines (.txt .log): one per line, as bytes"
    " or as the one text field. json (.json .jsonl): an object per line. csv: a header, then rows. parquet (.pq).",
)
_TO = typer.Option("--to", metavar="HOST:PORT", help="The sender; by default that of the suite in --dir.")
_STREAM = typer.Option(
    metavar="NAME",
    help="The stream's name. By default it is derived from the file's content, so sending the same file again, with the"
    " same --frame, resumes where it stopped and adds nothing twice: frames are numbered by their last message."
    " Standard input is a new stream each time. Another file needs another name: under a used one, messages up to the"
    " number reached are left out.",
)
_AGAIN = typer.Option("--again", help="Send everything as new messages, also what was sent before.")
_FRAME = typer.Option(
    min=1, max=1_000_000, metavar="N", help="Messages per frame, fewer where they would be too large."
)


_ON_ERROR = typer.Option(
    "--on-error",
    help="What to do with a line or row that cannot be read, or is too large. stop: end the command there. skip: leave"
    " it out, print it on standard error (the first 20 of a file) and count it. dead-letter: send JSON lines as they"
    ' are to a source with format="json", whose sender turns invalid ones into dead letters. Bytes that a source\'s'
    " decoder cannot read become dead letters in any case.",
)


def send(
    files: Annotated[list[str], _FILES],
    *,
    format_: Annotated[Literal["binary", "lines", "json", "csv", "parquet"] | None, _FORMAT] = None,
    to: Annotated[str | None, _TO] = None,
    directory: Annotated[Path, DIRECTORY] = HERE,
    stream: Annotated[str | None, _STREAM] = None,
    again: Annotated[bool, _AGAIN] = False,
    frame: Annotated[int, _FRAME] = 4096,
    on_error: Annotated[Literal["stop", "skip", "dead-letter"], _ON_ERROR] = "stop",
) -> None:
    """Send files of messages to sources, and return when all messages are durable.

    When it ends earlier, it prints how much of each file is durable; the same command then resumes. Messages that were
    sent before are not sent again.
    """
    from rich.console import Console

    from bettong.client.message_files import Format, format_of
    from bettong.client.portion_sending import stream_of_file
    from bettong.client.sender import Sender
    from bettong.local.record import address_of

    pairs = _pairs(files)
    if again and stream is not None:
        raise typer.BadParameter("--again sends a new stream: leave --stream out")
    if format_ is None and any(path == _STANDARD_INPUT for _, path in pairs):
        raise typer.BadParameter("- has no file ending, so its format is unknown: give --format")
    kinds = [Format(format_) if format_ is not None else format_of(path) for _, path in pairs]
    _check_formats(kinds, on_error)
    unread = on_error == "dead-letter"
    console, errors = Console(highlight=False), Console(highlight=False, stderr=True)
    target = to or address_of(SENDER.name, directory)
    say = _skip_printer(errors) if on_error == "skip" else None
    with ExitStack() as leaving:
        feeds: list[FileFeed] = []
        for (source, path), kind in zip(pairs, kinds, strict=True):
            with errors.status(f"waiting for sender {target}, source {source} ..."):
                own = stream is None and (again or path == _STANDARD_INPUT)
                name = None if own else stream or stream_of_file(path, kind)
                sender = Sender(target, source, name, finite=stream is None)
            leaving.callback(sender.abandon)  # no effect once it is closed
            if unread:
                _check_takes_json(sender)
            feeds.append(_feed(sender, path, Format.LINES if unread else kind, frame, say))
        for feed in feeds:
            if feed.durable_before:
                name = stream or _name(feed)
                name = name if len(feeds) == 1 else f"{feed.sender.source.name}/{name}"
                going_on = f"{name}: resuming after {feed.durable_before:,} messages that are durable already"
                console.print(going_on, markup=False, soft_wrap=True)
        by_content = not again and not any(path == _STANDARD_INPUT for _, path in pairs)
        results = _sent(
            feeds, errors, _NAMED if stream is not None else _BY_CONTENT if by_content else _UNNAMED
        )
    remedy = "" if stream is not None else ", or --again sends it once more"
    for feed, (count, seconds) in zip(feeds, results, strict=True):
        _report_sent(feed, count, seconds, console, remedy)
    _report_skipped(feeds, errors)


def _check_formats(kinds: list[Format], on_error: str) -> None:
    """Raises BadParameter where `on_error` cannot apply to a file's format."""
    from bettong.client.message_files import Format

    if on_error == "skip" and Format.BINARY in kinds:
        raise typer.BadParameter(
            "--on-error skip: binary messages are delimited by their lengths, so nothing can be read after a wrong one"
        )
    if on_error == "dead-letter" and set(kinds) != {Format.JSON}:
        raise typer.BadParameter(
            "--on-error dead-letter: only JSON lines are sent as they are; with other files skip what cannot be read"
            " (--on-error skip)"
        )


def _check_takes_json(sender: Sender) -> None:
    """Raises BadParameter where the source does not read JSON."""
    if not sender.source.takes_json:
        raise typer.BadParameter(
            f'--on-error dead-letter: source {sender.source.name!r} does not read JSON: give it format="json" in'
            " the application, or skip what cannot be read (--on-error skip)"
        )


def _skip_printer(errors: Console) -> Callable[[str], None]:
    """A function that prints why a message is skipped, in a line."""

    def say(complaint: str) -> None:
        errors.print(f"skipped: {' '.join(complaint.split())}", style="yellow", markup=False, soft_wrap=True)

    return say


def _feed(
    sender: Sender, path: Path, kind: Format, frame: int, say: Callable[[str], None] | None
) -> FileFeed:
    """The feed of a file, or of standard input, into a stream."""
    from bettong.client.file_feed import FileFeed
    from bettong.client.message_input import InterruptibleInput, Piped

    if path != _STANDARD_INPUT:
        return FileFeed(sender, path, kind, frame=frame, say=say)
    stopped = threading.Event()
    try:
        interruptible = InterruptibleInput(FileIO(0, closefd=False), stopped)
    except OSError as error:
        raise typer.BadParameter(f"-: standard input cannot be read: {error}") from None
    piped = Piped("standard input", BufferedReader(interruptible))
    return FileFeed(sender, piped, kind, frame=frame, say=say, stopped=stopped)


def _sent(feeds: list[FileFeed], errors: Console, remedy: str) -> list[tuple[int, float]]:
    """The results of all feeds. The first failure ends the others, and is raised.

    `remedy`: how to resume where some messages are durable.
    """
    from bettong.errors import RefusedError

    with ThreadPoolExecutor(len(feeds), "send") as threads:
        sent = [threads.submit(feed.send) for feed in feeds]
        try:
            with _progress(errors) as progress:
                tasks = [progress.add_task(_name(feed), total=1.0, count=0, waits="") for feed in feeds]
                done = wait(sent, _POLL_S, FIRST_EXCEPTION)
                while done.not_done and not any(each.exception() for each in done.done):
                    for task, feed in zip(tasks, feeds, strict=True):
                        _show(feed, progress, task)
                    done = wait(sent, _POLL_S, FIRST_EXCEPTION)
            return [each.result() for each in (sent if not done.not_done else done.done)]
        except BaseException as error:
            for feed in feeds:  # else the pool would wait for their threads
                feed.abandon()
            _report_skipped(feeds, errors)
            _report_durable(feeds, errors)
            if not isinstance(error, RefusedError) and any(feed.sender.acknowledged for feed in feeds):
                errors.print(remedy, soft_wrap=True)
            raise


def _report_sent(feed: FileFeed, count: int, seconds: float, console: Console, remedy: str) -> None:
    """Prints how many messages are new, and how many of these the sender could not decode."""
    name = feed.sender.source.name
    if not count and feed.durable_before:
        console.print(
            f"nothing new for {name}: all of it was sent before{remedy}", markup=False, soft_wrap=True
        )
        return
    console.print(f"{count:,} messages to {name} in {seconds:.1f} s, {count / max(seconds, 1e-9):,.0f}/s")
    if refused := feed.sender.dead_letters:
        console.print(f"[yellow]{refused:,} of them could not be decoded[/yellow]: bettong tail dead-letters")


def _name(feed: FileFeed) -> str:
    """The file's name."""
    return feed.file.name


def _report_durable(feeds: list[FileFeed], errors: Console) -> None:
    """Prints how much of each file need not be sent again."""
    for each in feeds:
        source, durable = each.sender.source.name, each.sender.acknowledged
        errors.print(
            f"{_name(each)}: the first {durable:,} messages to {source} are durable",
            markup=False,
            soft_wrap=True,
        )


def _report_skipped(feeds: list[FileFeed], errors: Console) -> None:
    """Prints how many messages were skipped."""
    from bettong.client.file_feed import SHOWN_MAX

    for each in feeds:
        if each.refused:
            more = f"; the first {SHOWN_MAX} are named above" if each.refused > SHOWN_MAX else ""
            errors.print(
                f"{_name(each)}: {each.refused:,} skipped{more}", style="yellow", markup=False, soft_wrap=True
            )


def _pairs(files: list[str]) -> list[tuple[str, Path]]:
    """Sources, each with its file. Raises BadParameter."""
    if len(files) % 2:
        raise typer.BadParameter(f"{files[-1]!r} has no file: give pairs, SOURCE FILE [SOURCE FILE]...")
    if len(files) > 2 * _SOURCES_MAX:
        raise typer.BadParameter(f"{len(files) // 2} pairs; at most {_SOURCES_MAX} are sent at once")
    pairs = [(source, Path(file)) for source, file in zip(files[::2], files[1::2], strict=True)]
    sources = [source for source, _ in pairs]
    if sum(path == _STANDARD_INPUT for _, path in pairs) > 1:
        raise typer.BadParameter("- is given twice: standard input can be read only once")
    for source, path in pairs:
        if sources.count(source) > 1:
            raise typer.BadParameter(
                f"source {source!r} is given twice: send its files one after the other, which keeps their order"
            )
        if path != _STANDARD_INPUT and not path.is_file():
            remedy = "; give - and pipe it in" if path.is_fifo() else ""
            raise typer.BadParameter(f"{str(path)!r}, for source {source!r}, is not a file{remedy}")
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
        TextColumn("{task.fields[waits]}", markup=False, style="yellow"),
    )
    shown = console.is_terminal
    return Progress(*columns, console=console, transient=True, redirect_stdout=False, disable=not shown)


def _show(feed: FileFeed, progress: Progress, task: TaskID) -> None:
    """Shows the progress, and what the feed waits for. A pipe has no known length."""
    waits = feed.wait()
    progress.update(
        task,
        total=None if feed.done is None else 1.0,
        completed=feed.done or 0.0,
        count=feed.messages,
        waits=f"waiting for {waits}" if waits else "",
    )
