"""`make soak`: what becomes of the run it starts when it is ended itself."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from bettong.cli.exit_codes import TERMINATED
from tests.waiting import eventually

ROOT = Path(__file__).parents[2]
# In place of the Python that runs `bettong chaos`: notes that it runs, and that it is told to end. Not at once: whoever
# starts it cannot tell it anything before `Popen` returns.
STAND_IN = """#!/bin/sh
trap 'echo told to end >> {notes}; exit 0' TERM
sleep 0.3
echo begun > {notes}
while :; do sleep 0.05; done
"""


def test_sigterm_ends_the_run_that_it_started(tmp_path: Path) -> None:
    notes, stand_in = tmp_path / "notes", tmp_path / "python"
    stand_in.write_text(STAND_IN.format(notes=notes))
    stand_in.chmod(0o755)
    program = (
        f"import sys; from tests.faults import soak; sys.executable = {str(stand_in)!r};"
        f" sys.exit(soak.main(['--minutes', '0.001', '--report', {str(tmp_path / 'report.json')!r}]))"
    )
    with subprocess.Popen([sys.executable, "-c", program], cwd=ROOT) as soak:
        eventually(lambda: notes.exists() and notes.read_text() == "begun\n")
        soak.terminate()
        soak.wait(timeout=30)
    assert notes.read_text() == "begun\ntold to end\n"
    assert soak.returncode == TERMINATED
