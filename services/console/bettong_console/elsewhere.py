"""What cannot be changed from a page: why not, and the commands that do it. Pure."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True, slots=True)
class Elsewhere:
    """Why a page cannot change something, and what changes it, a command a line."""

    why: str
    commands: str


def elsewhere(application: str, suite: Path | None, release: str | None) -> Mapping[str, Elsewhere]:
    """What a page does not do, by `scale` and `reset`.

    `application`: its file. `suite`: the folder of the suite of this machine that runs it. `release`: of the chart.
    """
    file = shlex.quote(application)
    if suite is not None:
        folder = f" --dir {shlex.quote(str(suite))}"
        return {
            "scale": Elsewhere(
                "Here one Spark on this machine has all the slots, and how many is settled when it starts: one a core."
                " End the suite and start it with another number; it goes on from its snapshots.",
                f"bettong down{folder}\nBETTONG_SPARK_MASTER='local[4,4]' bettong up {file}{folder}",
            ),
            "reset": Elsewhere(
                "A processor that runs would save its states again, and this suite starts its processor again whenever"
                " it ends. So the suite has to be down.",
                # The record of a processor that was stopped lives for ten seconds.
                f"bettong down{folder} && sleep 12 &&\n"
                f"bettong state reset {file}{folder} --yes &&\nbettong up {file}{folder}",
            ),
        }
    if release is None:
        return {
            "scale": Elsewhere(
                "What its workers run on is not known here. On Kubernetes the chart's own console scales them"
                " (console.allowChanges), or this command does; else start or stop executors of your Spark.",
                "bettong k8s scale N",
            )
        }
    return {}
