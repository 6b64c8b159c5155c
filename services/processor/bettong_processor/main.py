"""Starts the processor: its settings, Java and Python for Spark, then everything else."""

from collections.abc import Mapping
from contextlib import nullcontext

from bettong.application.plan import plan
from bettong.config.processor import ProcessorSettings
from bettong.config.reading import read
from bettong.edges.application_file import load
from bettong_processor.application_code import ApplicationCode
from bettong_processor.daemon.prepared import Prepared
from bettong_processor.java import Java, set_environment


def main(overrides: Mapping[str, object]) -> None:
    """Runs until SIGTERM or SIGINT. Raises a BettongError that says what to do when it cannot go on."""
    settings = read(ProcessorSettings, overrides)
    code = ApplicationCode(settings, settings.reload) if settings.reload is not None else None
    if code is not None:
        settings = code.settings
    set_environment(settings)
    # Executors of a cluster live on when this process dies, and are on other machines.
    with Prepared() if settings.spark_master.startswith("local") else nullcontext(), Java(settings) as java:
        java.begin(plan(load(settings.application)).application)
        # Loading this takes a core for as long as Java needs another one to start.
        from bettong_processor.service import run

        run(settings, java, code)
