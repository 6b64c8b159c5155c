"""What tests of all folders share: a real broker and a real Redis, one of each a session, and names nobody else has."""

import itertools
import os
from collections.abc import Callable, Iterator

import pytest
from hypothesis import settings

from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from tests.postgres_server import PostgresServer

# No deadlines, for the machine may be busy; a failure prints what reproduces it.
settings.register_profile("bettong", deadline=None, print_blob=True)
settings.load_profile("bettong")


@pytest.fixture(scope="session")
def kafka(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """A running broker (`.bootstrap`), shared by all tests: use topics of your own application name."""
    with KafkaBroker(tmp_path_factory.mktemp("kafka"), heap_mb=256) as broker:
        yield broker


@pytest.fixture(scope="session")
def redis_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RedisServer]:
    """A running Redis (`.url`), shared by all tests: use keys of your own application name."""
    with RedisServer(tmp_path_factory.mktemp("redis")) as server:
        yield server


@pytest.fixture(scope="session")
def postgres() -> Iterator[PostgresServer]:
    """A running Postgres (`.url`), shared by all tests: use tables of your own."""
    server = PostgresServer()
    try:
        server.start()
        yield server
    finally:
        server.close()


@pytest.fixture(scope="session")
def unique_name() -> Callable[..., str]:
    """Makes names for applications (`unique_name()`, `unique_name("orders")`) that no other test has."""
    numbers = itertools.count(1)

    def make(what: str = "app") -> str:
        return f"{what}-{os.getpid()}-{next(numbers)}"

    return make
