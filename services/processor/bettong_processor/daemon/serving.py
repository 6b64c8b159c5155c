"""The daemon itself, with the application loaded and compiled before it forks workers.

What is imported and compiled here is shared by all workers, so that a new one costs milliseconds instead of seconds.

Spark reads its own protocol from this process's standard output: nothing here may print there.
"""

import gc
import importlib
import sys
from contextlib import suppress

from pyspark.daemon import manager

from bettong.config.processor import ProcessorSettings, Schedule
from bettong.config.reading import read
from bettong.edges.snapshot_stores import prepare
from bettong.errors import BettongError
from bettong.garbage import collect_rarely, log_pauses
from bettong.logs import configure
from bettong_processor.cpus import keep_for_workers, read_cpus
from bettong_processor.programs import programs

# What every worker would import by itself, and what the tasks of a schedule are made of.
_OF_EVERY_TASK = "pyspark.worker"
_OF_SCHEDULE = {
    Schedule.MICRO_BATCH: "bettong_processor.micro_batch.task",
    Schedule.RESIDENT: "bettong_processor.resident.task",
}


def load() -> None:
    """Imports all that tasks need, in the environment of the processor or of a daemon that Java started."""
    importlib.import_module(_OF_EVERY_TASK)
    with suppress(BettongError):  # said where they are used
        importlib.import_module(_OF_SCHEDULE[read(ProcessorSettings).schedule])


def serve() -> None:
    """Forks workers until Java is gone, or has had enough."""
    load()
    try:
        settings = read(ProcessorSettings)
        prepare(settings.snapshots)
        cpus = read_cpus(settings.exclusive_cpus)
        keep_for_workers(cpus)
        log = configure(settings, "processor-worker")
        log_pauses(settings.gc_log, "python-worker")
        (log.warning if cpus.broken else log.info)("CPUs", found=cpus.description())
        programs(settings)
    except BettongError as error:
        # A task that needs the application meets the same error again and reports it where it is seen.
        sys.stderr.write(f"daemon: {error}\n")
    # Spark collects garbage after every task. Looking through all that is loaded here took three quarters of a
    # worker's time; frozen, it is left out, and its pages stay shared with the workers.
    collect_rarely()
    gc.enable()  # `__main__` had it wait
    manager()
