"""Changes that a page cannot make: why not, and the commands that make them. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Why a page cannot make a change, and the commands that make it, one per line."""

    why: str
    commands: str


def elsewhere(application: str, suite: Path | None, release: str | None) -> Mapping[str, Elsewhere]:
    """The changes that a page does not make, of `scale` and `reset`.

    `application`: its file. `suite`: the folder of the suite of this machine that runs it. `release`: of the chart.
    """
    file = shlex.quote(application)
    if suite is not None:
        folder = f" --dir {shlex.quote(str(suite))}"
        return {
            "scale": Elsewhere(
                "Here one Spark on this machine has all slots; their number is fixed at its start: one per core. Stop"
                " the suite and start it with another number; it resumes from its snapshots.",
                f"bettong down{folder}\nBETTONG_SPARK_MASTER='local[4,4]' bettong up {file}{folder}",
            ),
            "reset": Elsewhere(
                "A running processor would save its states again, and this suite restarts its processor whenever it"
                " ends. So the suite must be stopped first.",
                # The record of a stopped processor expires after ten seconds.
                f"bettong down{folder} && sleep 12 &&\n"
                f"bettong state reset {file}{folder} --yes &&\nbettong up {file}{folder}",
            ),
        }
    if release is None:
        return {
            "scale": Elsewhere(
                "The platform of its workers is not known here. On Kubernetes the chart's own console scales them"
                " (console.allowChanges), or this command does; otherwise start or stop executors of your Spark.",
                "bettong k8s scale N",
            )
        }
    return {}
