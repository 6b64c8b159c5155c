"""Starts the processor: its settings, Java, then everything else."""

from collections.abc import Mapping

from bettong.settings import ProcessorSettings, read
from bettong_processor.java import Java


def main(overrides: Mapping[str, object]) -> None:
    """Runs until SIGTERM or SIGINT. Raises a BettongError that says what to do when it cannot go on."""
    settings = read(ProcessorSettings, overrides)
    with Java(settings) as java:
        # Loading this takes a core for as long as Java needs another one to start.
        from bettong_processor.service import run

        run(settings, java)
