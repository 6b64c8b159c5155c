"""How commands end: one line on standard error and an exit code; never a traceback for a user's mistake."""

from __future__ import annotations

import atexit
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import typer

from bettong.cli.exit_codes import INTERRUPTED, TERMINATED, USAGE
from bettong.errors import BettongError


def end_well(app: typer.Typer, arguments: list[str], *, name: str) -> int:
    """Runs a command line and returns its exit code; prints usage errors and Bettong's errors in one line."""
    try:
        status = app(arguments, prog_name=name, standalone_mode=False)
    except typer.TyperException as error:
        # Usage errors carry the command and a fuller message; others do not.
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


@contextmanager
def terminable_command() -> Iterator[None]:
    """Inside, SIGTERM and SIGHUP end a command as Ctrl-C does: what is open is closed. The exit code tells which."""
    from bettong.local.interrupts import Terminated, terminable

    try:
        with terminable():
            yield
    except Terminated:
        raise typer.Exit(TERMINATED) from None


class QuickExit:
    """Ends the process at exit, if `status` is set, without Python's teardown, which takes a processor 0.5 s.

    Exit handlers that are registered after its construction run as usual, and threads are joined.
    """

    def __init__(self) -> None:
        self.status: int | None = None
        atexit.register(self._exit)

    def _exit(self) -> None:
        if self.status is None:
            return
        logging.shutdown()
        for stream in (sys.stdout, sys.stderr):
            with suppress(OSError, ValueError):  # the reader of a pipe is gone, or the stream is closed
                stream.flush()
        os._exit(self.status)


def complain(text: str) -> None:
    """Writes an error as one line."""
    print("bettong: error:", " ".join(text.split()), file=sys.stderr, flush=True)  # noqa: T201
