"""Starts the processor: its settings, Java and Python for Spark, then everything else."""

from collections.abc import Mapping
from contextlib import nullcontext

from bettong.application.plan import plan
from bettong.config.processor import ProcessorSettings
from bettong.config.reading import read_at_start
from bettong.edges.application_file import load
from bettong_processor.application_code import ApplicationCode
from bettong_processor.daemon.prepared import Prepared
from bettong_processor.java import Java, set_environment
from bettong_processor.spark_master import is_on_one_machine


def main(overrides: Mapping[str, object]) -> None:
    """Runs until SIGTERM or SIGINT. When it cannot go on, raises a BettongError that names the remedy."""
    settings = read_at_start(ProcessorSettings, overrides)
    code = ApplicationCode(settings, settings.reload) if settings.reload is not None else None
    if code is not None:
        settings = code.settings
    set_environment(settings)
    # Not on a cluster: its executors are on other machines, and outlive this process.
    with Prepared() if is_on_one_machine(settings.spark_master) else nullcontext(), Java(settings) as java:
        java.begin(plan(load(settings.application)).application)
        # Imported while Java starts on another core.
        from bettong_processor.service import run

        run(settings, java, code)
