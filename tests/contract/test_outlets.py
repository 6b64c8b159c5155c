"""The contract of exactly-once outlets, kept by each: the same tests against Postgres, and all that come after it."""

from collections.abc import Callable, Sequence
from contextlib import closing
from typing import Any, Protocol

import pytest

from bettong.application.destinations import Postgres
from bettong.application.schema import schema_of
from bettong_receiver.errors import SinkError
from bettong_receiver.outlets.outlet import Lot, Outlet
from bettong_receiver.outlets.postgres import PostgresOutlet
from tests.postgres_server import PostgresServer
from tests.result_frames import Note

Name = Callable[..., str]
PARTITIONS = (0, 1, 5)


class System(Protocol):
    """A foreign system, as the tests see it."""

    def outlet(self) -> Outlet[Any]:
        """Another outlet of the same sink, as another receiver would have."""

    def message(self, text: str) -> Any:
        """A message that tells its text."""

    def content(self) -> list[str]:
        """The texts that everybody sees, in the order in which they came."""


class PostgresSystem:
    def __init__(self, server: PostgresServer, name: str) -> None:
        self._server, self._name = server, name.replace("-", "_")
        self._openings = 0
        server.run(
            f'CREATE TABLE "{self._name}" (number bigint, price float8, key text, id bigserial PRIMARY KEY)'
        )

    def outlet(self) -> Outlet[Any]:
        self._openings += 1
        return PostgresOutlet(
            self._server.url,
            Postgres(self._name),
            schema_of(Note),
            application=self._name,
            sink="notes",
            writer=str(self._openings),
        )

    def message(self, text: str) -> Any:
        return (text, 1, 0.5)

    def content(self) -> list[str]:
        statement = f'SELECT key FROM "{self._name}" ORDER BY id'  # noqa: S608 - a name that we made
        return [str(row[0]) for row in self._server.run(statement)]


@pytest.fixture(params=["postgres"])
def system(request: pytest.FixtureRequest, unique_name: Name) -> System:
    return PostgresSystem(request.getfixturevalue("postgres"), unique_name("outlet"))


def lot(system: System, partition: int, texts: Sequence[str], offset: int) -> Lot[Any]:
    position = b"\x00position of %d at %d\xff" % (partition, offset)
    return Lot(partition, [system.message(text) for text in texts], offset, position)


def test_a_new_sink_has_no_positions(system: System) -> None:
    for _ in range(2):
        with closing(system.outlet()) as outlet:
            assert outlet.open(PARTITIONS) == {0: None, 1: None, 5: None}


def test_what_is_delivered_is_seen_in_order_and_its_position_found_by_the_next(system: System) -> None:
    with closing(system.outlet()) as outlet:
        outlet.open(PARTITIONS)
        outlet.deliver([lot(system, 1, ["a", "é"], 7), lot(system, 5, ["x"], 9)])
        outlet.deliver([lot(system, 1, [f"{number}" for number in range(2000)], 8)])
        outlet.deliver([lot(system, 0, [], 3)])
    content = system.content()
    numbers = [f"{number}" for number in range(2000)]
    assert [text for text in content if text != "x"] == ["a", "é", *numbers]
    assert content.count("x") == 1
    with closing(system.outlet()) as outlet:
        assert outlet.open(PARTITIONS) == {
            0: lot(system, 0, [], 3).position,
            1: lot(system, 1, [], 8).position,
            5: lot(system, 5, [], 9).position,
        }


def test_an_older_outlet_stores_nothing_once_a_newer_one_is_open(system: System) -> None:
    with closing(system.outlet()) as old, closing(system.outlet()) as new:
        old.open(PARTITIONS)
        old.deliver([lot(system, 0, ["first"], 1)])
        assert new.open(PARTITIONS)[0] == lot(system, 0, [], 1).position
        with pytest.raises(SinkError):
            old.deliver([lot(system, 0, ["zombie"], 2)])
        new.deliver([lot(system, 0, ["second"], 2)])
        with pytest.raises(SinkError):
            old.deliver([lot(system, 1, ["zombie"], 2)])
    assert system.content() == ["first", "second"]


def test_a_closed_outlet_leaves_what_it_delivered_and_nothing_else(system: System) -> None:
    outlet = system.outlet()
    outlet.open(PARTITIONS)
    outlet.deliver([lot(system, 0, ["kept"], 1)])
    outlet.close()
    outlet.close()
    assert system.content() == ["kept"]
