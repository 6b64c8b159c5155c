"""All harnesses by name. Whoever adds a parser adds its harness here, and its seeds with `--seeds`.

A harness is loaded when it is asked for: a process that feeds one parser takes a third of the CPU time to start.
"""

from importlib import import_module

from tests.fuzz.harness import Harness

# What the modules of this folder hold.
NAMES_OF = {
    "of_requests": ("requests",),
    "of_frames": ("frames", "columns", "records", "results", "messages", "positions"),
    "of_stores": (
        "snapshots",
        "sink-positions",
        "batch-boundaries",
        "partitionings",
        "reference-tables",
        "exclusions",
    ),
    "of_states": ("states", "state-arrays"),
    "of_files": (
        "json",
        "csv",
        "binary",
        "layouts",
        "settings",
        "chaos-specs",
        "tokens",
        "connections",
    ),
    "of_chart": ("chart-values",),
}
MODULE_OF = {name: module for module, names in NAMES_OF.items() for name in names}


def harness_of(name: str) -> Harness:
    """Loads the module of a harness, and what that parser is made of."""
    harnesses: tuple[Harness, ...] = import_module(f"tests.fuzz.{MODULE_OF[name]}").HARNESSES
    return next(each for each in harnesses if each.name == name)
