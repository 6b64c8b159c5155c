"""Starts a sender: settings, logs, the application. `bettong sender` and containers run it."""

import asyncio
from collections.abc import Mapping

from bettong.application.plan import plan
from bettong.config.reading import read_at_start
from bettong.config.sender import SenderSettings
from bettong.edges.application_file import load
from bettong.garbage import collect_rarely, log_pauses
from bettong.logs import configure
from bettong.services import SENDER
from bettong.threads import take_turns_often
from bettong_sender.service import serve


def main(overrides: Mapping[str, object]) -> None:
    """Serves until SIGTERM or SIGINT. `overrides` take precedence over the environment. Raises BettongError."""
    settings = read_at_start(SenderSettings, overrides)
    logger = configure(settings, SENDER.name)
    planned = plan(load(settings.application))
    collect_rarely()
    take_turns_often()
    log_pauses(settings.gc_log, SENDER.name)
    asyncio.run(serve(settings, planned, logger))
