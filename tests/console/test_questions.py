"""Questions are answered by processes of their own: code that never ends, or ends the process, costs one answer."""

from __future__ import annotations

import asyncio
import contextlib
import json
import multiprocessing
import os
import socket
from pathlib import Path

import pytest

from bettong.config.connection_settings import KafkaConnection, RedisConnection
from bettong.local.locations import FoundLocations
from bettong_console.answering import newest_within
from bettong_console.errors import ConsoleRequestError
from bettong_console.question import CaseQuestion, DeadLettersQuestion, KeyQuestion, Question, RetryQuestion
from bettong_console.questions import AT_A_TIME_MAX, Questions
from tests.console.sites import EXAMPLE, recorded_site, served
from tests.waiting import eventually

ANN = KeyQuestion("clicks", "ann", whole=True)


def locations(tmp_path: Path) -> FoundLocations:
    """Of a suite of which nothing answers."""
    return FoundLocations(
        # Nobody listens there: no test may have this port, which is reserved.
        kafka=KafkaConnection("127.0.0.1:1"),
        redis=RedisConnection("redis://127.0.0.1:1/0"),
        sender=None,
        compiled=False,
        kernel_cache=tmp_path / "kernels",
        frame_bytes_max=1_000_000,
        state_dir=tmp_path / "states",
        snapshots="redis",
        state_key_file=None,
    )


def questions(application: Path, tmp_path: Path, *, answer_s_max: float = 60) -> Questions:
    return Questions(str(application), locations(tmp_path), answer_s_max=answer_s_max)


def refusal(asked: Questions, question: Question) -> tuple[int, str]:
    with pytest.raises(ConsoleRequestError) as caught:
        asyncio.run(asked.ask(question))
    assert not multiprocessing.active_children()
    return caught.value.status, str(caught.value)


def test_a_stage_or_a_key_that_there_is_not_is_named(tmp_path: Path) -> None:
    asked = questions(EXAMPLE, tmp_path)
    status, text = refusal(asked, KeyQuestion("nowhere", "ann", whole=False))
    assert (status, "clicks-by-page" in text) == (404, True)
    status, text = refusal(asked, KeyQuestion("", "ann", whole=False))
    assert (status, "give the stage" in text) == (400, True)


def test_a_kafka_that_is_away_is_said_and_is_not_waited_for(tmp_path: Path) -> None:
    status, text = refusal(questions(EXAMPLE, tmp_path), DeadLettersQuestion(""))
    assert (status, "Kafka" in text) == (503, True)


def test_a_test_is_made_of_what_clients_feed_alone(tmp_path: Path) -> None:
    asked = questions(EXAMPLE, tmp_path)
    status, text = refusal(asked, CaseQuestion("clicks-by-page", "/"))
    assert (status, "no client feeds stage clicks-by-page: make the test from a key of clicks" in text) == (
        422,
        True,
    )
    status, text = refusal(asked, CaseQuestion("clicks", "ann"))
    assert (status, "Kafka" in text) == (503, True)


def test_dead_letters_are_not_sent_again_where_nobody_knows_the_sender(tmp_path: Path) -> None:
    asked = questions(EXAMPLE, tmp_path)
    status, text = refusal(asked, RetryQuestion((), "", dry_run=False))
    assert (status, "BETTONG_CONSOLE_SENDER" in text) == (422, True)
    status, text = refusal(asked, RetryQuestion((), "", dry_run=True))
    assert (status, "Kafka" in text) == (503, True)


def test_code_that_never_ends_is_ended(tmp_path: Path) -> None:
    application = tmp_path / "app.py"
    application.write_text("while True:\n    pass\n")
    status, text = refusal(questions(application, tmp_path, answer_s_max=4), ANN)
    assert (status, "within 4 s" in text) == (504, True)


def test_code_that_ends_its_process_costs_that_answer_alone(tmp_path: Path) -> None:
    application = tmp_path / "app.py"
    application.write_text("import os\nos._exit(3)\n")
    status, text = refusal(questions(application, tmp_path), ANN)
    assert (status, "answer died" in text) == (500, True)


def test_a_process_that_dies_in_the_middle_of_its_answer_costs_that_answer_alone(tmp_path: Path) -> None:
    application = tmp_path / "app.py"
    # A message begins with its length: 100 bytes, of which 2 come.
    application.write_text(
        "import os\n"
        "from multiprocessing.connection import Connection\n"
        "def send(self, _):\n"
        "    os.write(self.fileno(), bytes([0, 0, 0, 100, 1, 2]))\n"
        "    os._exit(3)\n"
        "Connection.send = send\n"
        "1 / 0\n"
    )
    status, text = refusal(questions(application, tmp_path), ANN)
    assert (status, "answer died" in text) == (500, True)


def test_code_that_cannot_be_loaded_is_the_answer(tmp_path: Path) -> None:
    application = tmp_path / "app.py"
    application.write_text("1 / 0\n")
    status, text = refusal(questions(application, tmp_path), ANN)
    assert (status, "division by zero" in text) == (422, True)


def test_only_so_many_are_answered_at_a_time_and_one_that_nobody_waits_for_ends(tmp_path: Path) -> None:
    application = tmp_path / "app.py"
    application.write_text("while True:\n    pass\n")
    asked = questions(application, tmp_path)

    async def crowd() -> int:
        waiting = [asyncio.create_task(asked.ask(ANN)) for _ in range(AT_A_TIME_MAX)]
        await asyncio.sleep(0)
        with pytest.raises(ConsoleRequestError) as caught:
            await asked.ask(ANN)
        for each in waiting:
            each.cancel()
        await asyncio.gather(*waiting, return_exceptions=True)
        return caught.value.status

    assert asyncio.run(crowd()) == 503
    assert not multiprocessing.active_children()


def test_of_large_events_an_answer_has_the_newest_that_fit() -> None:
    events: list[dict[str, object]] = [{"state": each * 30} for each in "abc"]
    one = len(json.dumps(events[0]))
    assert newest_within(events, 3 * one) == events
    assert newest_within(events, 3 * one - 1) == events[1:]
    assert newest_within([*events, {"state": "d" * 3 * one}], 3 * one) == []
    assert newest_within([], 0) == []


def test_the_process_of_a_question_ends_when_the_page_that_asked_has_gone(tmp_path: Path) -> None:
    application, written = tmp_path / "app.py", tmp_path / "pid"
    application.write_text(
        "import os\nfrom pathlib import Path\n"
        f"Path({str(written)!r}).write_text(str(os.getpid()))\n"
        "while True:\n    pass\n"
    )

    def runs() -> bool:
        with contextlib.suppress(ProcessLookupError):
            os.kill(int(written.read_text()), 0)
            return True
        return False

    with served(recorded_site(ask=questions(application, tmp_path).ask)) as site:
        host, port = site.url.removeprefix("http://").split(":")
        with socket.create_connection((host, int(port)), timeout=10) as page:
            page.sendall(b"GET /api/key?key=ann&stage=clicks HTTP/1.1\r\nhost: 127.0.0.1\r\n\r\n")
            eventually(
                lambda: written.exists() and written.read_text() != "", what="the process of the question"
            )
            assert runs()
        eventually(lambda: not runs(), what="the end of that process")
