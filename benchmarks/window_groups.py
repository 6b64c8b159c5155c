"""Groups of messages and ephemeral windows, in plain Python and compiled, beside tumbling ones, in the worker alone."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from datetime import timedelta
from functools import cache
from statistics import median

import bettong
from benchmarks.folding import fold, worker_of
from benchmarks.window_counts import EVENTS_PER_KEY, KEYS_MANY, EventLoad, ready_counts
from bettong.application.windows.kinds import WindowKind
from bettong.worker.output.framing import OutputRecord

_SECOND = timedelta(seconds=1)
# A second has as many messages of each key as a group has.
KINDS: Mapping[str, WindowKind] = {
    "tumbling": bettong.tumbling(_SECOND),
    "counts": bettong.counts(EVENTS_PER_KEY),
    "counts, timeout": bettong.counts(EVENTS_PER_KEY, timeout=timedelta(hours=1)),
    "ephemeral": bettong.ephemeral(_SECOND),
}


def speed(kind: WindowKind, load: EventLoad, *, compiled: bool) -> tuple[float, list[OutputRecord]]:
    """Events a second of one core's time, and all that came out."""
    application, ready = ready_counts(kind, compiled=compiled)
    records, seconds = fold(worker_of(application.application, ready), load.frames(application))
    return len(load.keys) / seconds, records


def main() -> None:
    """Prints each; the arguments say of how many events in plain Python, compiled, and how many turns."""
    few, many, turns = (
        int(given) if given else usual
        for given, usual in zip([*sys.argv[1:4], "", "", ""][:3], (1_000_000, 4_000_000, 5), strict=True)
    )
    loads = cache(lambda events: EventLoad.of(events, keys=KEYS_MANY, per_key=EVENTS_PER_KEY))
    for name, kind in KINDS.items():
        found: dict[bool, list[float]] = {False: [], True: []}
        assert speed(kind, loads(few), compiled=False)[1] == speed(kind, loads(few), compiled=True)[1], (
            f"{name}: results differ"
        )
        for _ in range(turns):
            for compiled, events in ((False, few), (True, many)):
                found[compiled].append(speed(kind, loads(events), compiled=compiled)[0] / 1e6)
        python, fast = (
            f"{median(own):7.2f} ({min(own):.2f} - {max(own):.2f})" for own in (found[False], found[True])
        )
        print(f"{name:16} {python} {fast} million/s {median(found[True]) / median(found[False]):6.1f} times")


if __name__ == "__main__":
    main()
