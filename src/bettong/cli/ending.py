"""How commands end: one line on standard error and an exit code, never a traceback for a mistake of the user's."""

from __future__ import annotations

import sys

import typer

from bettong.cli.exit_codes import INTERRUPTED, USAGE
from bettong.errors import BettongError


def end_well(app: typer.Typer, arguments: list[str], *, name: str) -> int:
    """Runs a command line and returns its exit code; errors of the user's and of Bettong's are told in one line."""
    try:
        status = app(arguments, prog_name=name, standalone_mode=False)
    except typer.TyperException as error:
        # Mistakes on the command line know the command, and say more than their text; others do not.
        text = getattr(error, "format_message", error.__str__)()
        context = getattr(error, "ctx", None)
        complain(f"{text} (see `{context.command_path if context is not None else name} --help`)")
        return USAGE
    except BettongError as error:
        complain(str(error))
        return error.exit_code
    except KeyboardInterrupt:
        return INTERRUPTED
    return status if isinstance(status, int) else 0


def complain(text: str) -> None:
    """Writes an error as one line."""
    print("bettong: error:", " ".join(text.split()), file=sys.stderr, flush=True)  # noqa: T201
