"""Starts the receiver: settings, application, signals."""

import asyncio
import signal
from collections.abc import Mapping

from bettong.allocator import give_memory_back
from bettong.application.plan import Plan, plan
from bettong.config.reading import read_at_start
from bettong.config.receiver import ReceiverSettings
from bettong.edges.application_file import load
from bettong.edges.trace_export import exporting
from bettong.garbage import collect_rarely, log_pauses
from bettong.logs import Logger, configure
from bettong.services import RECEIVER
from bettong.threads import take_turns_often
from bettong_receiver.service import Receiver


def main(overrides: Mapping[str, object]) -> None:
    """Runs until SIGTERM or SIGINT, then returns. Raises a BettongError with the remedy when it cannot continue."""
    give_memory_back()  # each subscriber that leaves frees a log reader with its threads and buffers
    settings = read_at_start(ReceiverSettings, overrides)
    log = configure(settings, RECEIVER.name)
    planned = plan(load(settings.application))
    collect_rarely()
    take_turns_often()
    log_pauses(settings.gc_log, RECEIVER.name)
    asyncio.run(_run(settings, planned, log))


async def _run(settings: ReceiverSettings, planned: Plan, log: Logger) -> None:
    stop = asyncio.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(number, stop.set)
    with exporting(settings, RECEIVER.name, planned.application, log) as traces:
        await Receiver(settings, planned, log, traces).run(stop)
