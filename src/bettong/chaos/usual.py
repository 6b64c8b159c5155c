"""The default spec for an application when only its inputs are given: every process, the usual faults."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bettong.chaos.spec import TARGETS, Link, OtherProcess, Spec, checked
from bettong.services import RECEIVER, SENDER

# Faults end so long before the input does: recovery from the last one is measured by later input.
_CALM_S = 5.0
_FIRST_S = 2.0


def usual(
    application: str,
    inputs: Sequence[tuple[str, Path]],
    *,
    seed: int,
    duration_s: float,
    partitions: int,
    compiled: bool,
) -> Spec:
    """Kills and pauses of every process, sometimes two at once, cut connections, and a Redis that loses all its data.

    Every process recovers between two faults most of the time (Spark's driver takes 10 to 15 s to start); processes
    that start in a second or two are killed more often. `inputs`: (source, file).
    """
    when = {
        "from_s": min(_FIRST_S, duration_s / 4),
        "until_s": max(duration_s / 2, duration_s - _CALM_S),
    }
    every = [target for target in TARGETS if target != OtherProcess.EXECUTOR]
    quick = [OtherProcess.WORKER, SENDER.name, RECEIVER.name, OtherProcess.REDIS]
    nemeses: list[dict[str, object]] = [
        {"kind": "kill", "targets": every, "every_s": (15.0, 30.0)},
        {"kind": "kill", "targets": quick, "every_s": (3.0, 9.0)},
        {"kind": "kill", "targets": quick, "every_s": (25.0, 50.0), "together": 2},
        {"kind": "pause", "targets": every, "every_s": (12.0, 25.0), "for_s": (0.5, 4.0)},
        {"kind": "cut", "links": list(Link), "every_s": (12.0, 25.0), "for_s": (0.1, 2.0)},
        {"kind": "wipe", "every_s": (20.0, 40.0)},
    ]
    return checked(
        {
            "name": "usual",
            "seed": seed,
            "duration_s": duration_s,
            "workload": {
                "application": application,
                "inputs": [{"source": source, "file": file} for source, file in inputs],
                "partitions": partitions,
                "compiled": compiled,
            },
            "nemeses": [nemesis | when for nemesis in nemeses],
        },
        "the command line",
    )
