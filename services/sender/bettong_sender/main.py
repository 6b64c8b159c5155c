"""Starts a sender: settings, logs, the application. What `bettong sender` and containers run."""

import asyncio
from collections.abc import Mapping

from bettong import settings as settings_module
from bettong.application.loading import load
from bettong.application.plan import plan
from bettong.garbage import collect_rarely
from bettong.logs import configure
from bettong.services import SENDER
from bettong_sender.service import serve


def main(overrides: Mapping[str, object]) -> None:
    """Serves until SIGTERM or SIGINT. `overrides` of settings come before the environment. Raises BettongError."""
    settings = settings_module.read(settings_module.SenderSettings, overrides)
    logger = configure(settings, SENDER.name)
    planned = plan(load(settings.application))
    collect_rarely()
    asyncio.run(serve(settings, planned, logger))
