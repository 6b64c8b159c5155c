"""Starts the console: settings, application, signals."""

import asyncio
import signal
from collections.abc import Mapping
from dataclasses import replace

from bettong.application.plan import Plan, plan
from bettong.config.console import ConsoleSettings
from bettong.config.reading import read_at_start
from bettong.edges.application_file import load
from bettong.local.locations import FoundLocations, found_locations
from bettong.logs import Logger, configure
from bettong.services import CONSOLE
from bettong_console.service import Console


def main(overrides: Mapping[str, object]) -> None:
    """Runs until SIGTERM or SIGINT, then returns. Raises a BettongError with the remedy when it cannot run."""
    settings = read_at_start(ConsoleSettings, overrides)
    log = configure(settings, CONSOLE)
    planned = plan(load(settings.application))
    given = {name: str(value) for name, value in overrides.items() if name in {"kafka", "redis"} and value}
    where = found_locations(settings.application, planned.application, settings.console_dir, **given)
    if settings.console_sender is not None:
        where = replace(where, sender=settings.console_sender)
    asyncio.run(_run(settings, planned, where, log))


async def _run(settings: ConsoleSettings, planned: Plan, where: FoundLocations, log: Logger) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    await Console(settings, planned, where, log).run(stop)
