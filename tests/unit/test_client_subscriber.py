"""A subscriber that was interrupted, or gave up, continues after its last result when it is asked again."""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from functools import partial
from typing import Any

import grpc
import pytest

from bettong.cli.ending import end_well
from bettong.cli.main import app as command_line
from bettong.client import subscriber as subscriber_module
from bettong.client.credentials import Credentials
from bettong.client.subscriber import Position, Result, Subscriber
from bettong.errors import ClientError
from bettong.v1.subscribe_pb2 import SubscribeRequest, SubscribeResponse
from bettong.v1.subscribe_pb2_grpc import SubscribeServiceServicer, add_SubscribeServiceServicer_to_server
from tests.servers.grpc_service import serving
from tests.waiting import eventually


class Numbers(SubscribeServiceServicer):
    """A receiver of one partition whose results are their offsets; away as long as `is_away`."""

    def __init__(self) -> None:
        self.is_away = False

    def Subscribe(  # noqa: N802 - the name in the proto
        self, request: SubscribeRequest, context: grpc.ServicerContext
    ) -> Iterator[SubscribeResponse]:
        """See the proto."""
        if self.is_away:
            context.abort(grpc.StatusCode.UNAVAILABLE, "away")
        start = request.positions[0].offset if request.positions else 0
        for offset in range(start, start + 3):
            position = Position(partition=0, offset=offset + 1)
            yield SubscribeResponse(messages=[b"%d" % offset], position=position)
        context.abort(grpc.StatusCode.UNAVAILABLE, "it stops")


@contextmanager
def reading(numbers: Numbers) -> Iterator[Subscriber]:
    with (
        serving(partial(add_SubscribeServiceServicer_to_server, numbers)) as address,
        Subscriber(address, "numbers", reconnect_s=0.4, credentials=Credentials()) as one,
    ):
        yield one


def test_an_interrupt_leaves_no_position_after_a_result_that_nobody_got(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[int] = []

    def interrupted(*values: Any) -> Result:
        made.append(1)
        if len(made) == 3:
            raise KeyboardInterrupt
        return Result(*values)

    with reading(Numbers()) as one:
        monkeypatch.setattr(subscriber_module, "Result", interrupted)
        found = [next(one).messages, next(one).messages]
        with pytest.raises(KeyboardInterrupt):
            next(one)
        assert [each.offset for each in one.positions] == [2]
        found += [next(one).messages for _ in range(4)]
    assert found == [[b"%d" % number] for number in range(6)]


def test_a_subscriber_that_gave_up_continues_when_it_is_asked_again() -> None:
    numbers = Numbers()
    with reading(numbers) as one:
        found = [next(one).messages for _ in range(3)]
        numbers.is_away = True
        with pytest.raises(ClientError, match="no results of 'numbers' for 0 s: away"):
            next(one)
        numbers.is_away = False
        found.append(next(one).messages)
        one.close()
        assert list(one) == []
    assert found == [[b"%d" % number] for number in range(4)]


def test_tail_says_that_the_receiver_is_away_once_each_time(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("bettong.cli.tail._AWAY_S", 0.02)
    numbers, said = Numbers(), ""
    numbers.is_away = True
    with serving(partial(add_SubscribeServiceServicer_to_server, numbers)) as address:
        line = ["tail", "numbers", "--receiver", address, "--count", "5"]
        with ThreadPoolExecutor(1) as thread:
            ended = thread.submit(end_well, command_line, line, name="bettong")

            def waits() -> bool:
                nonlocal said
                said += capsys.readouterr().err
                return bool(said)

            eventually(waits, what="it says why no results come")
            numbers.is_away = False
            assert ended.result() == 0
    found = capsys.readouterr()
    lines = (said + found.err).splitlines()
    assert lines[0] == f"waiting: receiver {address} is away (away)"
    assert set(lines[1:]) <= {f"waiting: receiver {address} is away (it stops)"}
    assert found.out.splitlines() == [str(number) for number in range(5)]


def test_a_subscriber_says_why_no_results_come() -> None:
    numbers = Numbers()
    with reading(numbers) as one:
        assert one.hindrance == ""
        assert next(one).messages == [b"0"]
        numbers.is_away = True
        with pytest.raises(ClientError):
            list(one)
        assert one.hindrance.endswith("is away (away)")
        numbers.is_away = False
        assert next(one).messages == [b"3"]
        assert one.hindrance == ""
