"""Entries in Redis that are no deaths of a sender: damaged, forged, or another version's."""

import asyncio
import dataclasses
import json
from collections.abc import Sequence

import pytest
import structlog
from structlog.testing import capture_logs

from bettong.identifiers import Origin, SequenceNumber
from bettong_sender.guards import Guards
from tests.unit.test_sender_deaths import death

FORGED = {
    "no JSON": "{",
    "no object": "[1]",
    "another version's": '{"id": "x"}',
    "a row that is a text": json.dumps({**dataclasses.asdict(death(3)), "row": "3"}),
    "a row that is true": json.dumps({**dataclasses.asdict(death(3)), "row": True}),
    "an id that is a number": json.dumps({**dataclasses.asdict(death(3)), "id": 7}),
    "an origin that is a list": json.dumps({**dataclasses.asdict(death(3)), "origin": []}),
    "a sequence that is null": json.dumps({**dataclasses.asdict(death(3)), "sequence": None}),
    "alone that is a number": json.dumps({**dataclasses.asdict(death(3)), "alone": 1}),
    "nested too deeply": "[" * 100_000,
}


class KnownDeaths:
    """A store that holds these."""

    def __init__(self, *known: str) -> None:
        self._known = list(known)

    def note(self, deaths: Sequence[str]) -> None:
        self._known += deaths

    def known(self) -> list[str]:
        return self._known


@pytest.mark.parametrize("forged", FORGED.values(), ids=FORGED)
def test_a_death_in_redis_that_is_none_is_passed_over_with_one_line(forged: str) -> None:
    with capture_logs() as lines:
        guards = Guards(
            ["orders"], store=KnownDeaths(death(2).encode(), forged), logger=structlog.get_logger()
        )
        for _ in range(3):
            asyncio.run(guards.refresh())
    assert guards.over(Origin("orders/feed"), SequenceNumber(7)) == [death(2)]
    (line,) = lines
    assert line["event"] == "entries of deaths in Redis are damaged or another version's, and are passed over"
    assert (line["count"], line["one"]) == (1, forged[:200])
