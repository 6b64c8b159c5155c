"""What a machine could do for a contestant that takes no CPU: feeder, reader and their broker share its cores."""

from collections.abc import Iterable
from statistics import median

from rich.table import Table

from benchmarks.peers.entries import Entry
from benchmarks.peers.race import FEEDING
from bettong.lab.numbers import shown


def ceilings(entries: Iterable[Entry], cores: int) -> Table:
    """For each that raced, medians: CPU of both sides, the share of all cores that they use, and the highest speed.

    The highest speed is what `cores` could feed and read if the contestant took nothing.
    """
    title = "CPU seconds of a million messages, and the speed of a contestant that takes none"
    rows = Table("", "contestant", FEEDING, "of all cores", "at most, messages/s", title=title)
    for entry in entries:
        samples = [each for each in entry.measurements[0].samples if FEEDING in each.parts]
        if samples:
            own = median(each.cpu_s_per_million or 0.0 for each in samples)
            feeding = median(each.parts[FEEDING] for each in samples)
            used = (own + feeding) * median(each.value for each in samples) / 1e6 / cores
            rows.add_row(
                entry.name, f"{own:.2f}", f"{feeding:.2f}", f"{used:.0%}", shown(cores * 1e6 / feeding)
            )
    return rows
