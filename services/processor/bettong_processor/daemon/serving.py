"""The daemon itself: loads and compiles the application, then forks workers.

All workers share what is imported and compiled here, so that a new one costs milliseconds instead of seconds.

Spark reads its own protocol from this process's standard output, so nothing else may be written there.
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

# The modules that every worker, and the tasks of each schedule, would import.
_OF_EVERY_TASK = "pyspark.worker"
_OF_SCHEDULE = {
    Schedule.MICRO_BATCH: "bettong_processor.micro_batch.task",
    Schedule.RESIDENT: "bettong_processor.resident.task",
}


def load() -> None:
    """Imports all that tasks need, with the environment of the processor or of a daemon that Java started."""
    importlib.import_module(_OF_EVERY_TASK)
    with suppress(BettongError):  # wrong settings are reported by `serve`
        importlib.import_module(_OF_SCHEDULE[read(ProcessorSettings).schedule])


def serve() -> None:
    """Forks workers until Java ends, or asks it to end."""
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
        # A task that needs the application raises the same error, and Spark reports it.
        sys.stderr.write(f"daemon: {error}\n")
    # Spark collects garbage after every task. Traversing all objects loaded here took three quarters of a worker's
    # time; frozen, they are skipped, and their pages stay shared with the workers.
    collect_rarely()
    gc.enable()  # `__main__` has disabled it
    manager()
