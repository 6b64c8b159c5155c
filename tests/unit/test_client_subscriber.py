"""A subscriber that was interrupted, or gave up, continues after its last result when it is asked again."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from typing import Any

import grpc
import pytest

from bettong.client import subscriber as subscriber_module
from bettong.client.credentials import Credentials
from bettong.client.subscriber import Position, Result, Subscriber
from bettong.errors import ClientError
from bettong.v1.subscribe_pb2 import SubscribeRequest, SubscribeResponse
from bettong.v1.subscribe_pb2_grpc import SubscribeServiceServicer, add_SubscribeServiceServicer_to_server
from tests.servers.grpc_service import serving


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
