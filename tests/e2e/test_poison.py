"""A user's function that raises: a dead letter, visible to the operator, and the stream goes on."""

import json
import subprocess
import sys

from bettong.client.sender import Sender
from tests.e2e.conftest import StartSuite
from tests.e2e.poison import Number
from tests.waiting import eventually


def test_a_function_that_raises_gives_a_dead_letter_and_the_stream_goes_on(start_suite: StartSuite) -> None:
    running = start_suite("tests/e2e/poison.py")
    with Sender(running.sender, "numbers", stream="bad-day") as sender:
        sender.send_messages([Number("a", 1), Number("a", 0), Number("a", 4)])
        sender.send_messages([Number("a", 5)])
        sender.flush(60)

    eventually(lambda: running.all_bytes_of("shares").count(b"\n") >= 3, seconds=60)
    shares = [json.loads(line) for line in running.all_bytes_of("shares").splitlines()]
    assert [(each["share"], each["seen"]) for each in shares] == [(100.0, 1), (25.0, 2), (20.0, 3)]

    eventually(lambda: running.all_bytes_of("dead-letters").count(b"\n") >= 1, seconds=60)
    (letter,) = [json.loads(line) for line in running.all_bytes_of("dead-letters").splitlines()]
    assert letter["computation"] == "divide"
    assert letter["reason"] == "ZeroDivisionError: division by zero"
    assert (letter["origin"], letter["index"]) == ("numbers/bad-day", 1)
    assert letter["sequence"] >= 1
    assert json.loads(letter["message"]) == {"group": "a", "value": 0}

    status = _status(running.suite.record.redis)
    assert "divide" in status
    assert "ZeroDivisionError" in status


def _status(redis: str) -> str:
    command = [sys.executable, "-m", "bettong", "status", "--redis", redis, "--application", "poison"]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=60, check=False, env={"COLUMNS": "250"}
    )
    return done.stdout + done.stderr
