"""Open pages over real connections: each gets new views, and their number is bounded."""

from __future__ import annotations

import contextlib
import json
import socket
import time
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import httpx2
import pytest

from bettong.config.access import parse
from bettong_console.serving import SILENT_S_MAX, UNREAD_S_MAX, connections_max
from tests.console.recordings import Look, recorded
from tests.console.sites import Served, recorded_site, served
from tests.console.test_site import TEXT, TOKEN
from tests.waiting import eventually

LISTENERS_MAX = 5


@pytest.fixture(scope="module")
def site() -> Iterator[Served]:
    with served(recorded_site(listeners_max=LISTENERS_MAX)) as found:
        yield found


@pytest.fixture
def address(site: Served) -> str:
    return site.url


def later(seconds: float) -> Look:
    """The last look of the recording, as if it were so much later."""
    last = recorded("visits")[-1]
    return replace(last, time_s=last.time_s + seconds)


def events(stream: httpx2.Response) -> Iterator[dict[str, Any]]:
    for line in stream.iter_lines():
        if line.startswith("data:"):
            yield json.loads(line.removeprefix("data:"))


def opened(stack: contextlib.ExitStack, address: str, view: str = "summary") -> httpx2.Response:
    return stack.enter_context(httpx2.stream("GET", f"{address}/api/live?view={view}", timeout=10))


def test_a_page_gets_the_newest_view_at_once_and_each_newer_one(site: Served) -> None:
    with contextlib.ExitStack() as stack:
        stream = opened(stack, site.url)
        assert stream.headers["content-type"].startswith("text/event-stream")
        received = events(stream)
        first = next(received)
        site.look(later(1))
        second = next(received)
    assert first["status"]["time_s"] < second["status"]["time_s"]


def test_what_has_not_changed_for_long_is_not_told_with_the_time_of_then(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    listeners = recorded_site().listeners
    monkeypatch.setattr(time, "time", lambda: 2_000_000_000.0)
    first = listeners.view("summary")
    monkeypatch.setattr(time, "time", lambda: 2_000_000_000.5)
    assert listeners.view("summary") is first
    monkeypatch.setattr(time, "time", lambda: 2_000_000_005.0)
    assert json.loads(listeners.view("summary"))["status"]["now_s"] == 2_000_000_005.0


def test_so_many_pages_may_be_open_and_the_next_one_is_told(address: str) -> None:
    with contextlib.ExitStack() as stack:
        pages = [events(opened(stack, address)) for _ in range(LISTENERS_MAX)]
        for page in pages:
            next(page)
        refused = httpx2.get(f"{address}/api/live")
        assert refused.status_code == 503
        assert "BETTONG_CONSOLE_LISTENERS_MAX" in refused.json()["error"]
        assert httpx2.get(f"{address}/api/now").status_code == 200

    def there_is_room() -> bool:
        with httpx2.stream("GET", f"{address}/api/live") as again:
            return again.status_code == 200

    eventually(there_is_room, what="room for a page after others were closed")


def test_200_connections_leave_the_site_answering(address: str) -> None:
    host, port = address.removeprefix("http://").split(":")
    with contextlib.ExitStack() as stack:
        for number in range(200):
            connection = stack.enter_context(socket.create_connection((host, int(port)), timeout=10))
            if number % 2:  # the others say nothing, or half of something
                connection.sendall(b"GET /api/live HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            elif number % 4:
                connection.sendall(b"GET / HTTP/1.1\r\nx-half: ")
        assert httpx2.get(f"{address}/alive", timeout=10).text == "alive\n"
        assert httpx2.get(f"{address}/api/now", timeout=10).status_code == 200


def test_connections_that_say_nothing_are_closed_and_others_stay(site: Served) -> None:
    host, port = site.url.removeprefix("http://").split(":")
    with contextlib.ExitStack() as stack:
        page = events(opened(stack, site.url))
        next(page)
        silent = stack.enter_context(socket.create_connection((host, int(port)), timeout=10))
        half = stack.enter_context(socket.create_connection((host, int(port)), timeout=10))
        half.sendall(b"GET / HTTP/1.1\r\nx-half: ")
        assert httpx2.get(f"{site.url}/alive").status_code == 200  # the server has seen those before, too
        site.close_silent(1000)
        site.close_silent(1000 + SILENT_S_MAX)
        assert (silent.recv(1), half.recv(1)) == (b"", b"")
        site.look(later(2))
        assert next(page)["status"]["word"]


def test_half_of_a_second_request_holds_no_connection_and_a_whole_one_stays(site: Served) -> None:
    host, port = site.url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=10) as half, httpx2.Client() as whole:
        half.sendall(b"GET /alive HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
        answer = half.makefile("rb")
        assert b"alive\n" in iter(answer.readline, b"")
        half.sendall(b"GET / HT")
        whole.get(f"{site.url}/alive")
        site.close_silent(1000)
        whole.get(f"{site.url}/alive")
        site.close_silent(1000 + SILENT_S_MAX)
        assert answer.read(1) == b""
        eventually(
            lambda: len(site.http.server_state.connections) == 1, what="the end of that connection alone"
        )


def test_who_does_not_read_its_answers_is_cut_off(site: Served) -> None:
    host, port = site.url.removeprefix("http://").split(":")
    count = 100  # more than the system's buffers take
    asked = b"GET /static/vendor/inter/inter.woff2 HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n"
    with socket.create_connection((host, int(port)), timeout=10) as deaf:
        deaf.sendall(asked * count)
        eventually(
            lambda: any(
                each.transport.get_write_buffer_size() for each in site.http.server_state.connections
            ),
            what="an answer that waits for its reader",
        )
        site.close_silent(1000)
        site.close_silent(1000 + UNREAD_S_MAX)
        eventually(lambda: not site.http.server_state.connections, what="the end of that connection")


def test_a_form_that_never_ends_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("bettong_console.site._FORM_S_MAX", 0.1)
    with served(recorded_site(lambda: parse(TEXT))) as own:
        host, port = own.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as slow:
            slow.sendall(b"POST /sign-in HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-length: 100\r\n\r\ntoken=")
            assert slow.recv(1000).startswith(b"HTTP/1.1 408 ")


@pytest.mark.parametrize(
    ("descriptors", "connections"), [(256, 56), (1024, 824), (20_000, 1024), (100, 16), (-1, 1024)]
)
def test_connections_leave_descriptors_for_all_else(descriptors: int, connections: int) -> None:
    assert connections_max(descriptors) == connections


def test_what_is_no_http_is_refused_and_harms_nobody(address: str) -> None:
    host, port = address.removeprefix("http://").split(":")
    for garbage in (
        b"\x16\x03\x01\x02\x00\x01\x00",
        b"GET\r\n\r\n",
        b"x" * 70_000,
        b"GET / HTTP/1.1\r\n" + b"a: b\r\n" * 9000,
    ):
        with (
            socket.create_connection((host, int(port)), timeout=10) as connection,
            contextlib.suppress(OSError),
        ):
            connection.sendall(garbage)
            connection.shutdown(socket.SHUT_WR)
            connection.recv(100)
    assert httpx2.get(f"{address}/alive").status_code == 200


def test_an_open_page_ends_when_its_token_was_taken_away() -> None:
    now = [parse(TEXT)]
    with served(recorded_site(lambda: now[0])) as site:
        shown = {"authorization": f"Bearer {TOKEN}"}
        with httpx2.stream("GET", f"{site.url}/api/live", headers=shown, timeout=10) as stream:
            received = events(stream)
            next(received)
            now[0] = parse(TEXT.replace("console = true", ""))
            site.look(later(1))
            assert list(received) == []


def test_open_pages_end_when_the_console_stops() -> None:
    with served(recorded_site()) as site, httpx2.stream("GET", f"{site.url}/api/live", timeout=10) as stream:
        received = events(stream)
        next(received)
        site.close_pages()
        assert list(received) == []
