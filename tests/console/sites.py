"""The console's site over a recording, for tests: all of it but what asks Redis, Kafka and the log."""

from __future__ import annotations

import asyncio
import json
import socket
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import structlog
import uvicorn
from starlette.testclient import TestClient
from starlette.types import ASGIApp

from bettong.config.access import Grants
from bettong.inspection.changes import Change
from bettong.inspection.flow_graph import FlowGraph, flow_graph
from bettong.inspection.live.application import loaded_plan
from bettong_console.access import Access
from bettong_console.board import Board
from bettong_console.elsewhere import Elsewhere
from bettong_console.errors import ConsoleRequestError
from bettong_console.history_texts import HistoryTexts
from bettong_console.listeners import Listeners
from bettong_console.pages import page_files
from bettong_console.question import CaseQuestion, DeadLettersQuestion, KeyQuestion, Question
from bettong_console.serving import SilentConnections, listening_socket, server
from bettong_console.site import Site
from bettong_console.views import description
from tests.console.recordings import Look, recorded

EXAMPLE = Path(__file__).parents[2] / "examples" / "visits.py"
OBJECTIVE_P99_MS = 10.0
CASE = "def test_recorded_case() -> None:\n    assert '<b>' != '</pre>'\n"


@dataclass(frozen=True, slots=True)
class RecordedSite:
    """A site, and the parts with which a test changes its data."""

    board: Board
    listeners: Listeners
    application: ASGIApp


def client(site: RecordedSite) -> TestClient:
    """Asks it without a socket; its address is one of loopback."""
    return TestClient(site.application, base_url="http://127.0.0.1:7400", follow_redirects=False)


def recorded_site(
    grants: Callable[[], Grants] | None = None,
    *,
    listeners_max: int = 64,
    local: bool = True,
    looks: list[Look] | None = None,
    graph: FlowGraph | None = None,
    ask: Callable[[Question], Awaitable[str]] | None = None,
    changes_allowed: bool = False,
    release: str | None = None,
    elsewhere: Mapping[str, Elsewhere] | None = None,
) -> RecordedSite:
    """The site as it is after a recording of `examples/visits.py`, or after other looks and with another graph."""
    planned = loaded_plan(str(EXAMPLE))
    board = Board(planned.application, OBJECTIVE_P99_MS)
    for look in recorded("visits") if looks is None else looks:
        board.add(look.time_s, look.time_s, look.answers)
    listeners = Listeners(board, listeners_max)
    site = Site(
        board=board,
        histories=HistoryTexts(board.history),
        listeners=listeners,
        ask=ask or answer_recorded,
        description=description(planned.application, graph or flow_graph(planned), OBJECTIVE_P99_MS),
        files=page_files(),
        access=Access(grants, local=local, changes_allowed=changes_allowed),
        secure=False,
        release=release,
        elsewhere=elsewhere or {},
        log=structlog.get_logger(),
    )
    return RecordedSite(board, listeners, site.application())


async def answer_recorded(question: Question) -> str:
    """What `bettong_console.answering` answered to a question about `examples/visits.py`."""
    await asyncio.sleep(0)
    folder = Path(__file__).parent / "recorded"
    if isinstance(question, DeadLettersQuestion):
        return (folder / "dead_letters.json").read_text()
    if isinstance(question, CaseQuestion):
        return json.dumps({"stage": question.stage, "key": question.key, "text": CASE})
    assert isinstance(question, KeyQuestion), "nothing was recorded of what is changed"
    if question.stage == "nowhere":
        raise ConsoleRequestError(404, "there is no stage 'nowhere', only clicks, clicks-by-page")
    found = json.loads((folder / "key.json").read_text())
    return json.dumps(found | {"key": question.key, "stage": question.stage})


@dataclass(frozen=True, slots=True)
class Served:
    """A site that is served: its address, and how a test changes it meanwhile."""

    url: str
    site: RecordedSite
    loop: asyncio.AbstractEventLoop
    http: uvicorn.Server
    silent: SilentConnections

    def close_silent(self, now_s: float) -> None:
        """As the console does after each look."""
        self._call(lambda: self.silent.close_old(now_s))

    def look(self, look: Look) -> None:
        """As if the console had looked once more."""
        self._call(lambda: self.site.board.add(look.time_s, look.time_s, look.answers))
        self._call(self.site.listeners.wake)

    def note(self, changes: Iterable[Change]) -> None:
        """As if that had happened."""
        for change in changes:
            self._call(partial(self.site.board.note, change))
        self._call(self.site.listeners.wake)

    def streams(self) -> int:
        """How many pages are open."""
        return self.site.listeners._count

    def close_pages(self) -> None:
        """As the console does when it stops."""
        self._call(self.site.listeners.close)

    def _call(self, call: Callable[[], None]) -> None:
        async def called() -> None:
            await asyncio.sleep(0)
            call()

        asyncio.run_coroutine_threadsafe(called(), self.loop).result(10)


@contextmanager
def served(site: RecordedSite) -> Iterator[Served]:
    """The site at a port of loopback, on a thread of its own, while the block runs."""
    loop = asyncio.new_event_loop()
    with listening_socket("127.0.0.1:0") as listening:
        http = server(site.application, None)
        thread = threading.Thread(target=_run, args=(loop, http, listening), name="site")
        thread.start()
        try:
            url = f"http://127.0.0.1:{listening.getsockname()[1]}"
            yield Served(url, site, loop, http, SilentConnections(http))
        finally:
            site.listeners.close()
            http.should_exit = True
            thread.join()


def _run(loop: asyncio.AbstractEventLoop, http: uvicorn.Server, listening: socket.socket) -> None:
    with asyncio.Runner(loop_factory=lambda: loop) as runner:
        runner.run(http.serve([listening]))
