"""Runs the program `helm`, and finds the chart that it installs."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
from collections.abc import Sequence
from pathlib import Path

from bettong.errors import ClusterError

STDIN = Path("-")  # as a file of values: what `call_helm` is given

_CALL_S_MAX = 300.0
_SMALL = "values-dev.yaml"
_HERE = Path(__file__).resolve().parents[3] / "deploy" / "helm" / "bettong"


def chart_of(given: Path | None, *, named_by: str = "--chart FOLDER") -> Path:
    """The folder of the chart. Raises ClusterError when there is none. `named_by`: the option that names it."""
    chart = given or _HERE
    if not small_values(chart).is_file():
        raise ClusterError(f"no chart in {chart}: give {named_by}, that of deploy/helm/bettong")
    return chart


def small_values(chart: Path) -> Path:
    """The chart's values file for trials: small, with bundled Kafka and Redis, without persistence."""
    return chart / _SMALL


def image_values(images: str) -> dict[str, str]:
    """The value `image` for FOLDER:TAG of the three images; without a tag, the chart's tag."""
    folder, _, tag = images.rpartition(":")
    if not folder or "/" in tag:  # no colon, or the last one precedes a port
        folder, tag = images, ""
    return {"repository": folder, "tag": tag}


def values_words(file: Path) -> list[str]:
    """The words that give helm a file of values. It reads the path as a line of CSV, which may name several files."""
    path = str(file).replace('"', '""')
    return ["--values", f'"{path}"' if {",", '"'} & {*path} else path]


def file_words(key: str, file: Path) -> list[str]:
    """The words that set a value to a file's text.

    In the path a comma begins another value, a leading brace a list, and a backslash escapes, as in `helm --set`.
    """
    path = re.sub(r"[\\,{]", r"\\\g<0>", str(file))
    return ["--set-file", f"{key}={path}"]


def helm_program() -> str:
    """The path of helm. Raises ClusterError when it is not installed."""
    program = shutil.which("helm")
    if program is None:
        raise ClusterError("helm is not on the PATH: it installs the chart; install helm 4 or 3")
    return program


def call_helm(words: Sequence[str], *, context: str | None, given: str = "") -> None:
    """Runs helm and waits for it. `given`: its standard input. Raises ClusterError with its error output."""
    chosen = ["--kube-context", context] if context is not None else []
    try:
        done = subprocess.run(
            [helm_program(), *words, *chosen],
            input=given,
            capture_output=True,
            text=True,
            check=False,
            timeout=_CALL_S_MAX,
            env=dict(os.environ),
            start_new_session=True,  # Ctrl-C must not interrupt helm halfway
        )
    except subprocess.TimeoutExpired:
        raise ClusterError(f"helm {words[0]} did not end within {_CALL_S_MAX:g} s") from None
    if done.returncode:
        raise ClusterError(f"helm {words[0]}: {done.stderr.strip()}")


def uninstall(release: str, namespace: str, *, context: str | None) -> None:
    """Removes a release, if it is there. Raises ClusterError with helm's error output."""
    call_helm(["uninstall", release, "--namespace", namespace, "--ignore-not-found"], context=context)
