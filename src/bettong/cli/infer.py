"""`bettong infer`: classes of messages from example data."""

from __future__ import annotations

import keyword
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal, cast

import typer

if TYPE_CHECKING:
    from io import BufferedReader

_STANDARD_INPUT = Path("-")
_FILE = typer.Argument(metavar="FILE", help="JSON lines or CSV, or - for standard input (with --format).")
_FORMAT = typer.Option("--format", help="The file's format; by default from its ending.")
_NAME = typer.Option(metavar="NAME", help="The class of a row; by default named after the file.")
_ROWS = typer.Option(min=1, max=1_000_000, metavar="N", help="Read at most N rows, from the first on.")


def infer(
    file: Annotated[Path, _FILE],
    *,
    format_: Annotated[Literal["json", "csv"] | None, _FORMAT] = None,
    name: Annotated[str | None, _NAME] = None,
    rows: Annotated[int, _ROWS] = 10_000,
) -> None:
    """Print dataclasses for the messages in a file, to paste into an application.

    Types are the narrowest that hold every row read; a comment after a field marks a guess.
    """
    from bettong.client.example_rows import examples
    from bettong.client.message_files import Format, format_of
    from bettong.client.message_input import Piped
    from bettong.schema.inferred_classes import class_name, source_of

    if file == _STANDARD_INPUT and format_ is None:
        raise typer.BadParameter("- has no file ending, so its format is unknown: give --format")
    if name is not None and (not name.isidentifier() or keyword.iskeyword(name)):
        raise typer.BadParameter(f"--name {name!r} is not a class name")
    if file != _STANDARD_INPUT and not file.is_file():
        raise typer.BadParameter(f"{str(file)!r} is not a file")
    kind = Format(format_) if format_ is not None else format_of(file, offered=(Format.JSON, Format.CSV))
    piped = file == _STANDARD_INPUT
    given = Piped("standard input", cast("BufferedReader", sys.stdin.buffer)) if piped else file
    found = examples(given, kind, rows)
    where = "standard input" if piped else file.name
    read = f"{found.rows.seen:,} row{'s' * (found.rows.seen > 1)}"
    note = f"Inferred from {'all' if found.is_all else 'the first'} {read} of {where}."
    if found.repeated:
        note += f" Left out, several columns each: {', '.join(map(repr, found.repeated))}."
    source = source_of(
        found.rows,
        name or class_name("message" if piped else file.stem),
        " ".join(note.split()),
        of_text=kind is Format.CSV,
    )
    typer.echo(source, nl=False)
