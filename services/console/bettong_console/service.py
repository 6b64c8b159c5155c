"""The life cycle of a console: inspects the deployment, serves pages, stops without waiting for open ones.

    starting ──> serving ──(SIGTERM)──> stopping: open pages are ended, then the server

It inspects once a second while a page is open, else every 10 s, only for the history: an unwatched console costs next
to nothing. If a service's record is late, it inspects again at the time when that would count, so that a dead service
shows within 2 s. The history is kept in Redis. A Redis or a Kafka that is away ends nothing: pages show what is
unknown, and since when.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import socket
import time
import uuid
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import uvicorn

from bettong.application.plan import Plan
from bettong.config.access import Grants
from bettong.config.console import ConsoleSettings
from bettong.config.endpoints import is_loopback
from bettong.edges.grpc_server.reloaded import Reloaded
from bettong.edges.grpc_server.security import read_tokens
from bettong.inspection.deployment import DeploymentAnswers
from bettong.inspection.flow_graph import flow_graph
from bettong.inspection.live.deployment import LiveDeployment
from bettong.inspection.overview import overdue_s
from bettong.local.locations import FoundLocations
from bettong.local.record import find
from bettong.logs import Logger
from bettong_console.access import Access
from bettong_console.board import Board
from bettong_console.elsewhere import elsewhere
from bettong_console.health import health_served
from bettong_console.history_texts import HistoryTexts
from bettong_console.kept_history import KeptHistory
from bettong_console.listeners import Listeners
from bettong_console.pages import page_files
from bettong_console.questions import Questions
from bettong_console.serving import SilentConnections, listening_socket, server, tls_context
from bettong_console.site import Site
from bettong_console.views import description

# The interval of inspections for open pages: a chart has a value per second.
_WATCHED_S = 1
# Partitions write twice a second: two inspections within that would see the same records, as if nothing had moved.
_AGAIN_S_MIN = 0.6
# A step of the hour's history.
IDLE_S = 10


class Console:
    """One console process. Make it where its event loop runs; `run` it once."""

    def __init__(self, settings: ConsoleSettings, plan: Plan, where: FoundLocations, log: Logger) -> None:
        self._settings = settings
        self._log = log
        self._board = Board(plan.application, settings.console_objective_p99_ms)
        self._listeners = Listeners(self._board, settings.console_listeners_max)
        self._live = LiveDeployment(plan.application, where.redis, where.kafka)
        # A unique name, chosen once: see `edges.redis_store.lease`.
        writer = f"{socket.gethostname()}/{uuid.uuid4().hex}"
        self._kept = KeptHistory(self._board.history, where.redis, plan.application, writer, log)
        self._asking = ThreadPoolExecutor(max_workers=1, thread_name_prefix="poll")
        self._site = Site(
            board=self._board,
            histories=HistoryTexts(self._board.history),
            listeners=self._listeners,
            ask=Questions(settings.application, where).ask,
            description=description(plan.application, flow_graph(plan), settings.console_objective_p99_ms),
            files=page_files(),
            access=Access(
                _grants(settings.tokens, log),
                local=is_loopback(settings.console_listen),
                changes_allowed=settings.console_allow_changes,
            ),
            log=log,
            secure=settings.tls_certificate is not None,
            release=settings.console_release,
            elsewhere=elsewhere(
                settings.application, _suite(settings.console_dir, where), settings.console_release
            ),
        )

    async def run(self, stop: asyncio.Event) -> None:
        """Serves until `stop` is set. Raises SettingsError where it cannot listen, or files are wrong."""
        application = self._site.application()
        http = server(application, tls_context(self._settings, self._log))
        async with health_served(self._settings.health_listen):
            with listening_socket(self._settings.console_listen) as listening:
                await self._serve(http, listening, stop)

    async def _serve(self, http: uvicorn.Server, listening: socket.socket, stop: asyncio.Event) -> None:
        host, port = listening.getsockname()[:2]
        scheme = "https" if self._settings.tls_certificate is not None else "http"
        self._log.info("listening", address=f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}")
        polling = asyncio.create_task(self._poll(SilentConnections(http)))
        serving = asyncio.create_task(http.serve([listening]))
        stopped = asyncio.create_task(stop.wait())
        try:
            await asyncio.wait({polling, serving, stopped}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self._listeners.close()
            http.should_exit = True
            polling.cancel()
            stopped.cancel()
            await asyncio.gather(serving, polling, stopped, return_exceptions=True)
            await asyncio.get_running_loop().run_in_executor(self._asking, self._live.close)
            await asyncio.get_running_loop().run_in_executor(self._asking, self._kept.close)
            self._asking.shutdown(wait=False)
            self._log.info("stopped")
        for each in (polling, serving):
            if not each.cancelled():
                each.result()  # raises the error that ended it

    def _ask(self) -> DeploymentAnswers:
        return self._live.answers(redis_may_be_away=True)

    async def _poll(self, silent: SilentConnections) -> None:
        """Inspects in the middle of each interval; after a slow inspection, in the middle of the next one."""
        loop = asyncio.get_running_loop()
        every_s = _WATCHED_S
        while True:
            answers: DeploymentAnswers = await loop.run_in_executor(self._asking, self._ask)
            self._board.add(time.time(), time.monotonic(), answers, every_s=every_s)
            self._listeners.wake()
            if "redis" not in answers.silent:
                await self._keep(loop)
            silent.close_old(loop.time())
            every_s = await self._rest(answers)

    async def _keep(self, loop: asyncio.AbstractEventLoop) -> None:
        """Continues the history of an earlier console, and writes it for a later one."""
        self._kept.restore(await loop.run_in_executor(self._asking, self._kept.read), time.time())
        await loop.run_in_executor(self._asking, self._kept.take_lease)
        changes = self._kept.changes()
        if await loop.run_in_executor(self._asking, self._kept.write, changes):
            self._kept.note_written()

    async def _rest(self, answers: DeploymentAnswers) -> int:
        """Waits for the next inspection, and returns the interval; opening a page ends a long wait."""
        if self._listeners.are_there():
            await asyncio.sleep(until_watched(time.time(), answers))
            return _WATCHED_S
        with contextlib.suppress(TimeoutError):
            await asyncio.wait_for(self._listeners.wanted.wait(), until_next(time.time(), IDLE_S))
        return IDLE_S


def until_watched(now_s: float, answers: DeploymentAnswers) -> float:
    """Seconds until the next inspection for an open page: sooner where a service is late in these answers."""
    late = [left_s for record in answers.live.values() if (left_s := overdue_s(record)) is not None]
    usual_s = until_next(now_s, _WATCHED_S)
    return min(usual_s, max(_AGAIN_S_MIN, *late)) if late else usual_s


def until_next(now_s: float, every_s: int) -> float:
    """Seconds until the middle of the next interval of `every_s`."""
    half_s = every_s / 2
    return (math.floor((now_s - half_s) / every_s) + 1) * every_s + half_s - now_s


def _grants(tokens: Path | None, log: Logger) -> Callable[[], Grants] | None:
    """A function that returns the current grants; None where no tokens are required."""
    if tokens is None:
        return None
    return Reloaded([tokens], lambda: read_tokens(tokens), log).current


def _suite(directory: Path, where: FoundLocations) -> Path | None:
    """The folder of the suite whose Kafka this is; None if it is not a suite's."""
    record = find(directory)
    return directory if record is not None and record.kafka_connection == where.kafka else None
