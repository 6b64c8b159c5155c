"""`bettong console` on a real Kafka and Redis: what it answers about keys and dead letters of a log that was folded."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest

from bettong.config.console import ConsoleSettings
from bettong.config.reading import read
from bettong.local.addresses import free_ports
from bettong.local.broker import KafkaBroker
from bettong.local.locations import found_locations
from bettong.local.redis_server import RedisServer
from bettong.logs import configure
from bettong_console.question import DeadLettersQuestion, KeyQuestion, Question
from bettong_console.questions import Questions
from bettong_console.service import Console
from tests.integration.recorded_run import RecordedRun
from tests.waiting import eventually


@pytest.fixture(scope="module")
def world(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    unique_name: Callable[..., str],
    tmp_path_factory: pytest.TempPathFactory,
) -> RecordedRun:
    """An application that ran, with states, results, and one dead letter."""
    found = RecordedRun(unique_name("seen"), tmp_path_factory.mktemp("world") / "app.py", kafka, redis_server)
    found.make_topics()
    found.run(found.payments(40))
    return found


def ask(world: RecordedRun, question: Question) -> dict[str, Any]:
    where = found_locations(
        str(world.app), world.name, Path("/nowhere"), kafka=world.kafka.bootstrap, redis=world.redis.url
    )
    found: dict[str, Any] = json.loads(asyncio.run(Questions(str(world.app), where).ask(question)))
    return found


def test_the_history_of_a_key_ends_with_the_state_that_it_has(world: RecordedRun) -> None:
    account, state = next(iter(world.outcome.states["add"].items()))
    stage = world.plan.stages[0].name
    found = ask(world, KeyQuestion(stage, str(account), whole=True))
    assert (found["begin"], found["first"], found["from_snapshot"], found["stopped"]) == (0, 0, False, None)
    taken = [event for event in found["events"] if event["verdict"] == "taken"]
    assert found["total"] == len(found["events"]) > len(taken) > 0  # each record came twice
    (last,) = [step for step in taken[-1]["states"] if step["computation"] == "add"]
    assert last["after"]["total"] == state["total"]
    assert all(
        output["message"]["account"] == account for output in taken[0]["outputs"] if output["to"] == "totals"
    )
    newest = ask(world, KeyQuestion(stage, str(account), whole=False))
    assert (newest["from_snapshot"], newest["until"]) == (True, found["until"])
    assert newest["snapshots"] == [newest["first"]]
    assert newest["first"] in found["snapshots"]


def test_dead_letters_are_read_with_their_reasons(world: RecordedRun) -> None:
    found = ask(world, DeadLettersQuestion(""))
    assert (found["total"], found["by_computation"]) == (1, {"add": 1})
    (dead_letter,) = found["dead_letters"]
    assert "thirteen" in dead_letter["reason"]
    assert ask(world, DeadLettersQuestion("visit"))["dead_letters"] == []


def test_a_console_shows_how_far_logs_are_folded_and_answers_over_http(world: RecordedRun) -> None:
    (port,) = free_ports(1)
    overrides = {
        "application": str(world.app),
        "kafka": world.kafka.bootstrap,
        "redis": world.redis.url,
        "console_listen": f"127.0.0.1:{port}",
        "console_dir": "/nowhere",
    }
    settings = read(ConsoleSettings, overrides)
    where = found_locations(
        str(world.app), world.name, Path("/nowhere"), kafka=world.kafka.bootstrap, redis=world.redis.url
    )

    async def story() -> tuple[dict[str, Any], httpx2.Response]:
        stop = asyncio.Event()
        life = asyncio.create_task(
            Console(settings, world.plan, where, configure(settings, "console")).run(stop)
        )
        async with httpx2.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=90) as asking:
            await asyncio.to_thread(eventually, lambda: answers(port), what="the first answer of the console")
            view = (await asking.get("/api/now?view=partitions")).json()
            answer = await asking.get("/api/dead-letters")
        stop.set()
        await life
        return view, answer

    view, answer = asyncio.run(story())
    assert view["status"]["word"] == "Down"  # nothing runs: it is said, and what the log holds is shown
    assert view["total"] == len(world.plan.stages) * 3
    assert sum(row["lag"] for row in view["rows"]) > 0
    assert answer.json()["total"] == 1


def answers(port: int) -> bool:
    """Whether a console has looked once."""
    try:
        return httpx2.get(f"http://127.0.0.1:{port}/api/now").status_code == 200
    except httpx2.TransportError:
        return False
