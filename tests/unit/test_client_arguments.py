"""Wrong arguments of clients are refused by name, before anything is called."""

from __future__ import annotations

from typing import Any

import pytest

from bettong.client.credentials import Credentials
from bettong.client.sender import Sender
from bettong.client.subscriber import Subscriber
from bettong.errors import RefusedError

ADDRESS = "127.0.0.1:1"


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"target": None}, "target None: expected host:port"),
        ({"target": ""}, "target '': expected host:port"),
        ({"target": 7100}, "target 7100: expected host:port"),
        ({"stream": 5}, "stream 5, .* expected text"),
        ({"client": b"\xff"}, r"client b'\\xff', .* expected text"),
        ({"stream": "a", "acknowledged": -1}, "acknowledged -1: expected text, and a whole number from 0"),
        ({"stream": "a", "acknowledged": 1.5}, "acknowledged 1.5: expected text"),
    ],
)
def test_a_sender_refuses(arguments: dict[str, Any], complaint: str) -> None:
    given = {"target": ADDRESS, "source": "orders", "reconnect_s": 0.1, "credentials": Credentials()}
    with pytest.raises(RefusedError, match=complaint):
        Sender(**{**given, **arguments})


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        ({"target": None}, "target None: expected host:port"),
        ({"start": "newest"}, "start 'newest' of sink 'totals': expected earliest or latest"),
    ],
)
def test_a_subscriber_refuses(arguments: dict[str, Any], complaint: str) -> None:
    given = {"target": ADDRESS, "sink": "totals", "credentials": Credentials()}
    with pytest.raises(RefusedError, match=complaint):
        Subscriber(**{**given, **arguments})
