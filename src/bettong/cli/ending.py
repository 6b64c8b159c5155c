"""How commands end: one line on standard error and an exit code; never a traceback for a user's mistake."""

from __future__ import annotations

import atexit
import errno
import logging
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import typer

from bettong.cli.exit_codes import INTERRUPTED, TERMINATED, USAGE
from bettong.cli.printable import printable
from bettong.errors import BettongError

_FULL = {errno.ENOSPC, errno.EDQUOT, errno.EIO}
# Errors of a name that was given, wherever it is looked up first.
_NAME = {errno.ENAMETOOLONG, errno.ELOOP}
_NAME_CHARACTERS_MAX = 200


def end_well(app: typer.Typer, arguments: list[str], *, name: str) -> int:
    """Runs a command line and returns its exit code; prints usage errors and Bettong's errors in one line."""
    try:
        status = app(arguments, prog_name=name, standalone_mode=False)
    except typer.TyperException as error:
        complain(_usage_error(error, name))
        return USAGE
    except BettongError as error:
        complain(str(error))
        return error.exit_code
    except OSError as error:
        if error.errno in _NAME and error.filename is not None:
            complain(f"{str(error.filename)[:_NAME_CHARACTERS_MAX]}: {error.strerror}")
            return USAGE
        if error.errno not in _FULL or error.filename is not None:
            raise
        complain(
            f"standard output, or a file, cannot be written: {error.strerror}; what is there is incomplete"
        )
        _forget_output()
        return BettongError.exit_code
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


def fill_closed_streams() -> None:
    """Opens /dev/null for each standard stream that is closed: else a file or connection gets its number."""
    for stream, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, stream) is None:
            setattr(sys, stream, Path(os.devnull).open(mode))  # noqa: SIM115 - it stays open


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


def _usage_error(error: typer.TyperException, name: str) -> str:
    """What is wrong with the command line, and the command whose help says how it is right."""
    # Usage errors carry the command and a fuller message; others do not.
    text = getattr(error, "format_message", error.__str__)() or "No command is given"
    context = getattr(error, "ctx", None)
    known = getattr(context and context.command, "commands", {})
    if context is not None and context.parent is not None and known and "Did you mean" not in text:
        text = f"{text.rstrip('.')}; there are {', '.join(known)}"
    return f"{text} (see `{context.command_path if context is not None else name} --help`)"


def _forget_output() -> None:
    """Discards what is buffered for standard output: Python would try to write it at its end."""
    with suppress(OSError, ValueError):  # it has no file
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def complain(text: str) -> None:
    """Writes an error as one line."""
    print("bettong: error:", printable(" ".join(text.split())), file=sys.stderr, flush=True)  # noqa: T201
