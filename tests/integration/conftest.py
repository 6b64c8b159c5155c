"""What tests against a real log share: topics of their own, and a broker that may be killed."""

from collections.abc import Callable, Iterator

import pytest

from bettong.edges.kafka_log import LogAdmin
from bettong.edges.redis_store import RedisStore
from bettong.edges.redis_store.membership import RedisMembership
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from tests.integration.log_parts import created
from tests.integration.membership_parts import TTL_MS
from tests.servers.receiver_process import Feed, Store


@pytest.fixture
def admin(kafka: KafkaBroker) -> Iterator[LogAdmin]:
    """Of the shared broker."""
    with LogAdmin(kafka.bootstrap) as admin:
        yield admin


@pytest.fixture
def topic(admin: LogAdmin, unique_name: Callable[..., str]) -> str:
    """A topic of two partitions on the shared broker."""
    return created(admin, unique_name("log"))


@pytest.fixture
def reported(capsys: pytest.CaptureFixture[str]) -> Callable[[], str]:
    """What a command has printed since this was asked last, errors behind the rest."""

    def text() -> str:
        captured = capsys.readouterr()
        return captured.out + captured.err

    return text


@pytest.fixture(scope="session")
def own_storage(tmp_path_factory: pytest.TempPathFactory) -> KafkaBroker:
    """See `own_process`; not started."""
    return KafkaBroker(tmp_path_factory.mktemp("own-kafka"), heap_mb=256)


@pytest.fixture(scope="module")
def own_process(own_storage: KafkaBroker) -> Iterator[KafkaBroker]:
    """See `own_broker`. It rests between files: idle, a broker takes in two minutes what a start takes."""
    with own_storage as broker:
        yield broker


@pytest.fixture
def own_broker(own_process: KafkaBroker) -> KafkaBroker:
    """A broker that a test may kill; it runs when the test begins. One for all tests: a start costs seconds."""
    own_process.start()
    return own_process


@pytest.fixture
def own_topic(own_broker: KafkaBroker, unique_name: Callable[..., str]) -> str:
    """A topic of two partitions on the broker that may be killed."""
    with LogAdmin(own_broker.bootstrap) as admin:
        return created(admin, unique_name("log"))


@pytest.fixture
def feed(name: str, kafka: KafkaBroker) -> Iterator[Feed]:
    """Writes results of the test's application, `name`, as a processor does."""
    one = Feed(name, kafka.bootstrap)
    yield one
    one.close()


@pytest.fixture
def store(name: str, redis_server: RedisServer) -> Iterator[Store]:
    """What the receiver of the test's application, `name`, leaves in Redis."""
    one = Store(redis_server.url, name)
    yield one
    one.close()


@pytest.fixture
def members_store(redis_server: RedisServer, unique_name: Callable[..., str]) -> Iterator[RedisStore]:
    """Where `members` are kept."""
    with RedisStore(redis_server.url, unique_name("members")) as one:
        yield one


@pytest.fixture
def members(members_store: RedisStore) -> RedisMembership:
    """Tasks of a resident processor, whose first run has begun."""
    one = RedisMembership(members_store, ttl_ms=TTL_MS)
    one.begin_run("run-1")
    return one
