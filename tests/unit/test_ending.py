"""How a command ends by a signal: what is open is closed, and the exit code says which one it was."""

from __future__ import annotations

import os
import signal

import pytest
import typer

from bettong.cli.ending import end_well, terminable_command


@pytest.mark.parametrize(
    ("sent", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143), (signal.SIGHUP, 143), (None, 0)]
)
def test_a_command_that_a_signal_ends_closes_what_is_open_and_says_which(
    sent: signal.Signals | None, code: int
) -> None:
    app, closed = typer.Typer(), []

    @app.command()
    def ended() -> None:
        with terminable_command():
            try:
                if sent is not None:
                    os.kill(os.getpid(), sent)
            finally:
                closed.append(True)

    assert end_well(app, [], name="test") == code
    assert closed == [True]
