"""The program `helm`, which installs the chart."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bettong.errors import ClusterError

_CALL_S_MAX = 300.0
# Values for trying out: all is bundled, small, and nothing is kept.
_SMALL = "values-dev.yaml"


def small_values(chart: Path) -> Path:
    """The chart's own values for trying out: all is bundled, small, and nothing is kept."""
    return chart / _SMALL


def call_helm(words: Sequence[str], *, context: str | None, given: str = "") -> None:
    """Runs helm and blocks until it ends. `given`: for its standard input. Raises ClusterError with what it said."""
    program = shutil.which("helm")
    if program is None:
        raise ClusterError("helm is not on the PATH: it installs the chart; install helm 4 or 3")
    chosen = ["--kube-context", context] if context is not None else []
    try:
        done = subprocess.run(
            [program, *words, *chosen],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=_CALL_S_MAX,
            env=dict(os.environ),
            start_new_session=True,  # a Ctrl-C is ours: what helm has begun it ends
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(f"helm {words[0]} did not end within {_CALL_S_MAX:g} s") from None
    if done.returncode:
        raise ClusterError(f"helm {words[0]}: {done.stderr.strip()}")
