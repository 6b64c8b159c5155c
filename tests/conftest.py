"""What tests of all folders share: a real broker and a real Redis, one of each a session, and names nobody else has."""

import itertools
import os
import random
import signal
from collections.abc import Callable, Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from tests.garbage_search import pytest_collection
from tests.kubernetes.building import CHART_TOOLS, CONTROL_PLANE
from tests.servers.collector import Collector, collecting
from tests.servers.postgres import PostgresServer
from tests.servers.prometheus import is_installed
from tests.servers.s3 import S3Server

__all__ = ["pytest_collection"]

# No deadlines, for the machine may be busy; a failure prints what reproduces it. `ci` draws the same cases each time.
settings.register_profile("bettong", deadline=None, print_blob=True)
settings.register_profile("ci", settings.get_profile("bettong"), derandomize=True)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "bettong"))

# Files that run soon: twice as many as run at a time.
_FILES_AHEAD = 6
_KAFKA = pytest.StashKey[KafkaBroker]()


def pytest_report_header() -> list[str]:
    """Whether the tests on a control plane, and those by tools that look at charts, are among those that run."""
    control_plane = "none, its tests are left out (`make kubernetes` builds one)"
    prometheus = "none, its tests are left out (`make test` installs it, as root)"
    chart_tools = "none, its tests are left out (`make chart-tools` builds it)"
    return [
        f"control plane: {CONTROL_PLANE.folder if CONTROL_PLANE.are_built() else control_plane}",
        *(
            f"{each.name}: {each.folder if each.are_built() else chart_tools}"
            for each in CHART_TOOLS.values()
        ),
        f"prometheus: {'installed' if is_installed() else prometheus}",
    ]


def pytest_sessionstart() -> None:
    """Ctrl-C ends what tests start, though a shell has all ignore it that it runs in the background."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_teardown(
    item: pytest.Item, nextitem: pytest.Item | None
) -> Generator[None, object, object]:
    """Behind each file: the broker rests while none that follows needs it. Idle, it takes in two minutes what a start
    takes.

    Fails a test that has SIGINT ignored behind it: what is started after it would not end by Ctrl-C.
    """
    ended = yield
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)
        pytest.fail("the test left SIGINT ignored", pytrace=False)
    broker = item.config.stash.get(_KAFKA, None)
    is_behind_a_file = nextitem is None or nextitem.path != item.path
    if broker is not None and is_behind_a_file and not is_wanted_soon("kafka", item):
        broker.stop()
    return ended


@pytest.fixture(scope="session")
def kafka_folder(tmp_path_factory: pytest.TempPathFactory, pytestconfig: pytest.Config) -> Iterator[Path]:
    """See `kafka`."""
    yield tmp_path_factory.mktemp("kafka")
    pytestconfig.stash[_KAFKA].stop()


@pytest.fixture(scope="module")
def kafka(kafka_folder: Path, pytestconfig: pytest.Config) -> KafkaBroker:
    """A running broker (`.bootstrap`), shared by all tests: use topics of your own application name."""
    broker = pytestconfig.stash.get(_KAFKA, None)
    if broker is None or not broker.runs():
        # Made anew: somebody else may have its ports by now.
        broker = pytestconfig.stash[_KAFKA] = KafkaBroker(kafka_folder, heap_mb=256)
        broker.start()
    return broker


def is_wanted_soon(fixture: str, item: pytest.Item) -> bool:
    """Whether a file of those that follow at once has a test with that fixture."""
    behind = [
        *itertools.takewhile(lambda each: each.path != item.path, reversed(item.session.items)),
    ][::-1]
    soon = [*dict.fromkeys(each.path for each in behind)][:_FILES_AHEAD]
    return any(
        isinstance(each, pytest.Function) and fixture in each.fixturenames
        for each in behind
        if each.path in soon
    )


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
def s3_process(tmp_path_factory: pytest.TempPathFactory) -> Iterator[S3Server]:
    """See `s3_server`."""
    with S3Server(tmp_path_factory.mktemp("s3")) as server:
        server.make_bucket()
        yield server


@pytest.fixture
def s3_server(s3_process: S3Server, monkeypatch: pytest.MonkeyPatch) -> S3Server:
    """A running S3 server with a bucket, shared by all tests; the environment says where and who we are."""
    s3_process.be_found(monkeypatch)
    return s3_process


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Collector, str]]:
    """A collector that serves, and its endpoint; whoever reports to it waits for its last spans, however busy the
    machine is.
    """
    monkeypatch.setattr("bettong.edges.trace_export._CLOSE_S_MAX", 60.0)
    with collecting() as found:
        yield found


@pytest.fixture
def seed() -> int:
    """Of random cases that hypothesis does not draw; `ci` draws the same each time, as there. A failure names it."""
    return 0 if settings().derandomize else random.SystemRandom().randrange(2**32)


@pytest.fixture(scope="session")
def unique_name() -> Callable[..., str]:
    """Makes names for applications (`unique_name()`, `unique_name("orders")`) that no other test has."""
    numbers = itertools.count(1)

    def make(what: str = "app") -> str:
        return f"{what}-{os.getpid()}-{next(numbers)}"

    return make
