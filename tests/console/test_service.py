"""The life of a console: it serves while Kafka is away, it stops although pages are open, and wrong settings end it."""

from __future__ import annotations

import asyncio
import json
import ssl
import subprocess
import sys
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
from redis import Redis

from bettong.application.plan import plan
from bettong.config.access import digest
from bettong.config.console import ConsoleSettings
from bettong.config.reading import read
from bettong.edges.application_file import load
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong.errors import SettingsError
from bettong.inspection.deployment import DeploymentAnswers
from bettong.inspection.live.deployment import LiveDeployment
from bettong.inspection.overview import unheard_s
from bettong.local.addresses import free_ports
from bettong.local.locations import found_locations
from bettong.local.redis_server import RedisServer
from bettong.logs import configure
from bettong_console import service
from bettong_console.history import SPANS
from bettong_console.service import Console, until_next, until_watched
from tests.console.sites import EXAMPLE
from tests.servers.certificates import Authority
from tests.waiting import bound_s

NOWHERE = "127.0.0.1:1"
# It is 2 s and 4 s.
UNHEARD_S_MAX, SILENT_S_MAX = 3.0, 6.0
# Says what one at work says, until it is killed.
PROCESSOR = """
import sys, threading, time
import structlog
from bettong.edges.redis_store import LiveMetrics, RedisStore
from bettong_processor.supervision import Live

with RedisStore(sys.argv[1], "visits") as store:
    live = Live(LiveMetrics(store), "processor", structlog.get_logger(), time.time, 0.5)
    while True:
        live.report("running", "", {"lag": 0})
        threading.Event().wait(live.interval_s)
"""
TOKEN = "of a person"  # noqa: S105 - of this test alone


@pytest.fixture(autouse=True)
def nothing_is_known(redis_server: RedisServer) -> None:
    """All consoles are of one application: what the tests before have written of it is gone."""
    with RedisStore(redis_server.url, "visits") as store, Redis.from_url(redis_server.url) as client:
        for key in client.scan_iter(store.key("*")):
            client.delete(key)


@asynccontextmanager
async def running(redis: str, **overrides: Any) -> AsyncIterator[str]:
    """A console while the block runs: its address, once it answers."""
    (port,) = free_ports(1)
    given = {"application": str(EXAMPLE), "redis": redis, "kafka": NOWHERE, **overrides}
    settings = read(ConsoleSettings, {"console_listen": f"127.0.0.1:{port}", **given})
    planned = plan(load(str(EXAMPLE)))
    where = found_locations(str(EXAMPLE), planned.application, Path("/nowhere"), kafka=NOWHERE, redis=redis)
    stop = asyncio.Event()
    console = Console(settings, planned, where, configure(settings, "console"))
    life = asyncio.create_task(console.run(stop))
    scheme = "https" if settings.tls_certificate is not None else "http"
    try:
        yield f"{scheme}://localhost:{port}"
    finally:
        stop.set()
        await asyncio.wait_for(life, 20)


async def answered(asking: httpx2.AsyncClient, path: str, *, status: int = 200) -> httpx2.Response:
    """The first answer of that status."""
    async with asyncio.timeout(20):
        while True:
            try:
                answer = await asking.get(path)
                if answer.status_code == status:
                    return answer
            except httpx2.TransportError:
                pass
            await asyncio.sleep(0.05)


def test_it_says_what_redis_knows_while_kafka_is_away_and_stops_although_a_page_is_open(
    redis_server: RedisServer,
) -> None:
    with RedisStore(redis_server.url, "visits") as store:
        LiveMetrics(store).write_live("sender", {"service": "sender", "state": "running", "since": 5}, 60)

    async def story() -> dict[str, Any]:
        async with running(redis_server.url) as address, httpx2.AsyncClient(base_url=address) as asking:
            found = (await answered(asking, "/api/now")).json()
            page = asking.build_request("GET", "/api/live")
            await asking.send(page, stream=True)
        return dict(found)

    found = asyncio.run(story())
    services = {each["name"]: each["state"] for each in found["services"]}
    assert services["sender"] == "running"
    assert services["receiver"] == "down"
    assert any("Kafka" in text for text in found["status"]["away"])


def test_by_tls_it_asks_for_a_token_and_plain_text_gets_nothing(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    authority = Authority(tmp_path)
    pair = authority.issue("localhost")
    tokens = tmp_path / "tokens.toml"
    tokens.write_text(f'[person]\nsha256 = "{digest(TOKEN)}"\nconsole = true\n')
    files = {"tls_certificate": pair.certificate, "tls_key": pair.key, "tokens": tokens}
    trust = ssl.create_default_context(cafile=str(authority.ca))

    async def story() -> None:
        async with running(redis_server.url, **files) as address:
            async with httpx2.AsyncClient(base_url=address, verify=trust) as asking:
                await answered(asking, "/api/now", status=401)
                asking.headers["authorization"] = f"Bearer {TOKEN}"
                assert (await answered(asking, "/api/now")).json()["status"]["application"] == "visits"
                signed_in = await asking.post("/sign-in", data={"token": TOKEN})
                assert "secure" in signed_in.headers["set-cookie"].lower()
            async with httpx2.AsyncClient() as plain:
                with pytest.raises(httpx2.TransportError):
                    await plain.get(address.replace("https", "http"))

    asyncio.run(story())


def test_new_certificates_and_authorities_of_clients_count_from_the_next_connection_on(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    old, new = Authority(tmp_path / "old"), Authority(tmp_path / "new")
    pair, clients = old.issue("localhost"), tmp_path / "clients.pem"
    clients.write_bytes(old.ca.read_bytes())
    files = {"tls_certificate": pair.certificate, "tls_key": pair.key, "tls_clients": clients}

    def shown_by(authority: Authority) -> ssl.SSLContext:
        """Who trusts an authority alone, and shows a certificate of it."""
        context = ssl.create_default_context(cafile=str(authority.ca))
        shown = authority.issue("person", name="person")
        context.load_cert_chain(shown.certificate, shown.key)
        return context

    async def story() -> None:
        async def alive(authority: Authority) -> bool:
            async with httpx2.AsyncClient(base_url=address, verify=shown_by(authority)) as asking:
                try:
                    return (await asking.get("/alive")).status_code == 200
                except httpx2.TransportError:
                    return False

        async with running(redis_server.url, **files) as address:
            async with httpx2.AsyncClient(base_url=address, verify=shown_by(old)) as asking:
                await answered(asking, "/alive")
            renewed = new.issue("localhost")
            clients.write_bytes(new.ca.read_bytes())
            pair.certificate.write_bytes(renewed.certificate.read_bytes())  # its key has yet to come
            assert (await alive(old), await alive(new)) == (True, False)
            pair.key.write_bytes(renewed.key.read_bytes())
            assert (await alive(old), await alive(new)) == (False, True)

    asyncio.run(story())


def test_probes_are_answered_without_tls_and_learn_nothing_else(
    redis_server: RedisServer, tmp_path: Path
) -> None:
    pair = Authority(tmp_path).issue("localhost")
    (port,) = free_ports(1)
    address = f"127.0.0.1:{port}"
    files = {"tls_certificate": pair.certificate, "tls_key": pair.key, "health_listen": address}

    async def story() -> None:
        async with (
            running(redis_server.url, **files),
            httpx2.AsyncClient(base_url=f"http://{address}") as ask,
        ):
            for path in ("/alive", "/api/now", "/static/main.js"):
                assert (await answered(ask, path)).text == "alive\n"
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(b"GET / HTTP/1.1\r\n" + b"x" * 70_000)
            assert await reader.read() == b""
            writer.close()
            with pytest.raises(SettingsError, match="BETTONG_HEALTH_LISTEN: cannot listen on"):
                async with running(redis_server.url, health_listen=address):
                    await asyncio.sleep(0)

    asyncio.run(story())


def test_a_port_that_is_taken_is_named(redis_server: RedisServer) -> None:
    async def story() -> None:
        async with running(redis_server.url) as address:
            port = address.rpartition(":")[2]
            with pytest.raises(
                SettingsError, match=rf"BETTONG_CONSOLE_LISTEN: cannot listen on 127.0.0.1:{port}: "
            ):
                async with running(redis_server.url, console_listen=f"127.0.0.1:{port}"):
                    await asyncio.sleep(0)

    asyncio.run(story())


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"console_listen": "0.0.0.0:7400"}, "anybody could read states"),
        ({"console_listen": "0.0.0.0:7400", "tokens": "t.toml"}, "tokens would be sent in plain text"),
        ({"tls_certificate": "a.pem"}, "give both, or none"),
        ({"tls_clients": "a.pem"}, "BETTONG_TLS_CLIENTS needs BETTONG_TLS_CERTIFICATE"),
        ({"console_listen": "here"}, "expected host:port"),
        ({"console_sender": "here"}, "expected host:port"),
        ({"console_allow_changes": True}, "needs BETTONG_TOKENS: only tokens with"),
        ({"console_listeners_max": 0}, "BETTONG_CONSOLE_LISTENERS_MAX"),
    ],
)
def test_settings_that_would_show_it_to_strangers_or_make_no_sense_are_refused(
    settings: dict[str, Any], fault: str
) -> None:
    with pytest.raises(SettingsError, match=fault):
        read(ConsoleSettings, {"application": "app.py", **settings})


def test_looks_are_in_the_middle_of_intervals_so_that_each_has_one() -> None:
    assert until_next(10.0, 1) == pytest.approx(0.5)
    assert until_next(10.5, 1) == pytest.approx(1.0)
    assert until_next(10.99, 1) == pytest.approx(0.51)
    assert until_next(10.0, 10) == pytest.approx(5)
    assert until_next(17.0, 10) == pytest.approx(8)


def test_it_looks_rarely_while_nobody_is_there_and_often_for_a_page(
    redis_server: RedisServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(service, "IDLE_S", 120)
    with RedisStore(redis_server.url, "visits") as store:
        LiveMetrics(store).write_live("sender", {"service": "sender", "state": "running", "since": 5}, 60)

    async def story() -> int:
        """Views of a page. The first is what was known; a look for each other."""
        async with running(redis_server.url) as address, httpx2.AsyncClient(base_url=address) as asking:
            await answered(asking, "/alive")
            views = 0
            async with asking.stream("GET", "/api/live", timeout=60) as page:
                async for line in page.aiter_lines():
                    views += line.startswith("data:")
                    if views == 4:
                        break
        return views

    assert asyncio.run(story()) == 4


def late(age_s: float) -> DeploymentAnswers:
    """As if Redis had said that a sender's last record is so old."""
    return DeploymentAnswers(
        live={"sender": {"ttl_s": "10", "age_s": f"{age_s}"}, "receiver": {"ttl_s": "x"}}
    )


def test_a_service_that_is_late_is_looked_at_again_when_it_would_count_and_shows_within_two_seconds() -> None:
    assert until_watched(10.5, DeploymentAnswers()) == until_watched(10.5, late(0.6)) == pytest.approx(1.0)
    assert until_watched(10.5, late(0.7)) == pytest.approx(0.6)
    assert until_watched(10.5, late(0.65)) == pytest.approx(0.65)
    assert until_watched(10.5, late(1.25)) == pytest.approx(0.6)
    assert until_watched(10.5, late(1.4)) == pytest.approx(1.0), "it counts already"
    for age in range(200):  # of its last record, when it is looked at for the first time after its death
        age_s, seen_s = age / 100, age / 100
        while unheard_s(late(age_s).live["sender"]) is None:
            left_s = until_watched(10.5, late(age_s))
            age_s, seen_s = age_s + left_s, seen_s + left_s
        assert age > 100 or seen_s < 2, "it is looked at once a second"


@pytest.mark.slow
@pytest.mark.timely
def test_a_processor_that_is_killed_as_a_whole_shows_within_seconds_on_an_open_page_and_so_does_its_return(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # A Kafka that is away costs each look 1.5 s; one that is there next to nothing, as none does.
    monkeypatch.setattr(
        service, "LiveDeployment", lambda application, redis, _kafka: LiveDeployment(application, redis, None)
    )
    with RedisServer(tmp_path) as own, RedisStore(own.url, "visits") as store:
        for name in ("sender", "receiver"):
            LiveMetrics(store).write_live(name, {"service": name, "state": "running", "since": 5}, 600)
        words = (sys.executable, "-c", PROCESSOR, own.url)
        processors = [subprocess.Popen(words)]

        def start() -> None:
            processors.append(subprocess.Popen(words))

        async def story() -> tuple[list[dict[str, Any]], list[float]]:
            """Views as it runs, is not heard of, is silent, and runs again; and when each was seen."""
            seen: list[dict[str, Any]] = []
            times: list[float] = []
            awaited = ["running", "unheard", "silent", "running"]
            async with running(own.url) as address, httpx2.AsyncClient(base_url=address) as asking:
                await answered(asking, "/alive")
                async with asyncio.timeout(60), asking.stream("GET", "/api/live", timeout=30) as page:
                    async for line in page.aiter_lines():
                        if not line.startswith("data:"):
                            continue
                        view = json.loads(line.removeprefix("data:"))
                        row = {each["name"]: each for each in view["services"]}["processor"]
                        state = "unheard" if row["unheard_s"] is not None else row["state"]
                        if state != awaited[len(seen)]:
                            continue
                        seen.append(view)
                        times.append(time.monotonic())
                        if len(seen) == len(awaited):
                            return seen, times
                        if state == "running":
                            processors[-1].kill()
                        elif state == "silent":
                            await asyncio.to_thread(start)
            raise AssertionError("the page ended")

        try:
            (before, unheard, silent, after), times = asyncio.run(story())
        finally:
            for each in processors:
                each.kill()
                each.wait(10)
    assert "processor" not in before["status"]["reason"]
    assert unheard["status"]["level"] == "notice"
    assert "processor: no report for" in unheard["status"]["reason"]
    assert silent["status"]["level"] == "bad"
    assert "processor" in silent["status"]["reason"]
    assert any("processor" in need["what"] and need["level"] == "bad" for need in silent["needs"])
    assert "processor" not in after["status"]["reason"]
    assert times[1] - times[0] < bound_s(UNHEARD_S_MAX)
    assert times[2] - times[0] < bound_s(SILENT_S_MAX)


def test_a_console_that_starts_anew_goes_on_with_the_history_of_the_one_before(
    redis_server: RedisServer,
) -> None:
    def forget() -> None:
        with RedisStore(redis_server.url, "visits") as store:
            rings = [store.key("history", name) for name in SPANS]
            store.ask("forgetting the history", lambda client: client.delete(*rings))
            LiveMetrics(store).write_live("receiver", {"service": "receiver", "latency_p99_ms": 7}, 60)

    async def first_value_s() -> int:
        async with running(redis_server.url) as address, httpx2.AsyncClient(base_url=address) as asking:
            async with asyncio.timeout(30), asking.stream("GET", "/api/live", timeout=30) as page:
                views = 0
                async for line in page.aiter_lines():
                    views += line.startswith("data:")
                    if views == 3:  # what was seen before this look is kept
                        break
            found = (await answered(asking, "/api/history?span=5m")).json()
        values = found["series"]["p99_ms"]
        return int(found["first_s"]) + next(at for at, value in enumerate(values) if value is not None)

    forget()
    first_s = asyncio.run(first_value_s())
    assert asyncio.run(first_value_s()) == first_s
    forget()
    assert asyncio.run(first_value_s()) > first_s, "a Redis that lost it has a hole"
