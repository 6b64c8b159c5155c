"""Performs the steps that `prerequisites` has decided: installs packages, and records class-data archives."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from threading import Timer

from bettong.errors import LocalError
from bettong.local.prerequisites import Installer, MachineFacts, SetupStep, requirement

_STEP_S_MAX = 3600.0  # half a gigabyte over a slow line
_END_S_MAX = 10.0
_RECORDER = "bettong_processor.recording"


def commands(step: SetupStep, facts: MachineFacts) -> list[list[str]]:
    """The commands of a step, in order."""
    if step.extras:
        wanted = requirement(facts, step.extras)
        if facts.installer is Installer.UV:
            return [["uv", "pip", "install", "--python", sys.executable, wanted]]
        return [[sys.executable, "-m", "pip", "install", "--disable-pip-version-check", wanted]]
    if step.package:
        return [["apt-get", "update"], ["apt-get", "install", "-y", "--no-install-recommends", step.package]]
    return [[sys.executable, "-m", _RECORDER]]


def perform(step: SetupStep, facts: MachineFacts, *, say: Callable[[str], None]) -> None:
    """Performs a step; `say` receives each line that its commands print.

    A step that was interrupted is repeated as a whole, but an installer does not repeat complete downloads. Raises
    LocalError when a command fails.
    """
    for command in commands(step, facts):
        _run(command, say)


def _run(command: Sequence[str], say: Callable[[str], None]) -> None:
    try:
        running = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            env={**os.environ, "DEBIAN_FRONTEND": "noninteractive"},
            start_new_session=True,  # a Ctrl-C reaches only this process, which ends the whole session
        )
    except OSError as error:
        raise LocalError(f"{command[0]} cannot be started: {error.strerror}") from None
    late = Timer(_STEP_S_MAX, _end, [running])
    late.start()
    try:
        assert running.stdout is not None  # noqa: S101 - stdout is a pipe
        with running.stdout as said:
            for line in said:
                say(line.rstrip())
        status = running.wait()
    finally:
        late.cancel()
        _end(running)
    if status:
        raise LocalError(f"`{' '.join(command)}` failed (exit code {status}): its last lines are above")


def _end(running: subprocess.Popen[str]) -> None:
    """Ends a command and its child processes, if it still runs."""
    with suppress(ProcessLookupError):
        if running.poll() is None:
            os.killpg(running.pid, signal.SIGTERM)
            try:
                running.wait(_END_S_MAX)
            except subprocess.TimeoutExpired:
                os.killpg(running.pid, signal.SIGKILL)
                running.wait()
