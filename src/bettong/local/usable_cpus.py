"""How many CPUs this process may use."""

import os


def usable_cpus() -> int:
    """Those that the kernel lets it run on; all of the machine where the system does not say, as macOS."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1
