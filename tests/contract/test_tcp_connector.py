"""The contract of the at-least-once TCP connector, with a real socket server that may answer anything."""

import json
from collections.abc import Callable, Iterator
from contextlib import closing

import pytest

from bettong.edges.redis_store import RedisSink, RedisStore
from bettong.errors import SettingsError
from bettong.local.addresses import LOOPBACK
from bettong.local.redis_server import RedisServer
from bettong_receiver.connectors.tcp import AtLeastOnceTcpConnector, address_of
from bettong_receiver.delivery.connector import ConnectorUnavailableError
from bettong_receiver.progress import SinkPartition
from tests.samples.many_descriptors import low_descriptors_taken
from tests.samples.sink_batches import sink_batch
from tests.servers.tcp_peer import OK, Peer


@pytest.fixture(params=["lines", "frames"])
def lines(request: pytest.FixtureRequest) -> bool:
    return bool(request.param == "lines")


@pytest.fixture
def peer(*, lines: bool) -> Iterator[Peer]:
    with Peer(lines=lines) as one:
        yield one


BEGINNINGS = {SinkPartition("notes", 0): 0, SinkPartition("notes", 1): 0}
Make = Callable[[], AtLeastOnceTcpConnector]


@pytest.fixture
def make(
    *, peer: Peer, lines: bool, redis_server: RedisServer, unique_name: Callable[..., str]
) -> Iterator[Make]:
    """Connectors of one sink, each as in another receiver."""
    store = RedisStore(redis_server.url, unique_name("tcp"))
    yield lambda: AtLeastOnceTcpConnector(peer.address, RedisSink(store), sink="notes", lines=lines)
    store.close()


def test_acknowledged_messages_are_in_order_and_the_next_connector_finds_their_position(
    make: Make, peer: Peer
) -> None:
    messages = [json.dumps({"number": number}).encode() for number in range(2500)]
    with closing(make()) as connector:
        assert connector.open(BEGINNINGS) == {
            SinkPartition("notes", 0): None,
            SinkPartition("notes", 1): None,
        }
        assert connector.deliver([sink_batch(0, messages, 7), sink_batch(1, [b"x"], 3)]) == {}
        connector.deliver([sink_batch(1, [], 4)])
    assert peer.kept == [*messages, b"x"]
    with closing(make()) as connector:
        assert connector.open(BEGINNINGS) == {
            ("notes", 0): sink_batch(0, [], 7).position(),
            ("notes", 1): sink_batch(1, [], 4).position(),
        }


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (None, "the peer closed before it answered"),
        (b"no\n", "the peer answered b'no"),
        (b"\xff\x00\x00\x00garbage", "the peer answered b'"),
        (b"\n", "the peer answered b'"),
    ],
)
def test_a_peer_that_does_not_say_ok_gets_the_batch_again_and_no_position_is_stored(
    make: Make, peer: Peer, answer: bytes | None, words: str
) -> None:
    peer.answers = [OK, answer]
    with closing(make()) as connector:
        connector.open(BEGINNINGS)
        connector.deliver([sink_batch(0, [b"first"], 1)])
        with pytest.raises(ConnectorUnavailableError, match=words):
            connector.deliver([sink_batch(0, [b"second"], 2)])
    with closing(make()) as connector:
        assert connector.open(BEGINNINGS)[SinkPartition("notes", 0)] == sink_batch(0, [], 1).position()
        connector.deliver([sink_batch(0, [b"second"], 2)])
    assert peer.kept == [b"first", b"second"]


def test_an_unexpected_answer_is_not_taken_for_that_to_the_next_batch(make: Make, peer: Peer) -> None:
    peer.answers = [OK + OK]
    with closing(make()) as connector:
        connector.open(BEGINNINGS)
        connector.deliver([sink_batch(0, [b"first"], 1)])
        with pytest.raises(ConnectorUnavailableError, match="without being asked"):
            connector.deliver([sink_batch(0, [b"second"], 2)])
    assert peer.kept == [b"first"]


def test_a_closed_idle_connection_is_reopened(make: Make, peer: Peer) -> None:
    with closing(make()) as connector:
        connector.open(BEGINNINGS)
        connector.deliver([sink_batch(0, [b"first"], 1)])
        connection = connector._connection
        assert connection is not None
        peer.answers = [None]
        connection.sendall(
            b"\n" if connector._lines else b"\xff\xff\xff\xff"
        )  # an empty batch: the peer closes
        assert connection.recv(1, 2) == b""  # MSG_PEEK
        connector.deliver([sink_batch(0, [b"second"], 2)])
    assert peer.kept == [b"first", b"second"]


def test_a_connection_may_have_a_descriptor_above_those_that_select_takes(make: Make, peer: Peer) -> None:
    with low_descriptors_taken(), closing(make()) as connector:
        connector.open(BEGINNINGS)
        connector.deliver([sink_batch(0, [b"first"], 1)])
        connector.deliver([sink_batch(0, [b"second"], 2)])
    assert peer.kept == [b"first", b"second"]


def test_a_batch_whose_answer_was_lost_comes_again_in_the_same_order(make: Make, peer: Peer) -> None:
    """A crash between answer and position: at least once."""
    with closing(make()) as connector:
        connector.open(BEGINNINGS)
        for chunk in connector._chunks([b"a", b"b"]):
            connector._send(chunk)
    with closing(make()) as connector:
        assert connector.open(BEGINNINGS)[SinkPartition("notes", 0)] is None
        connector.deliver([sink_batch(0, [b"a", b"b"], 1)])
    assert peer.kept == [b"a", b"b", b"a", b"b"]


def test_without_a_listener_the_destination_is_unavailable(make: Make, peer: Peer) -> None:
    connector = make()
    connector._address = (LOOPBACK, 1)
    with closing(connector), pytest.raises(ConnectorUnavailableError, match="no answer"):
        connector.deliver([sink_batch(0, [b"a"], 1)])
    assert peer.kept == []


def test_an_invalid_address_is_refused() -> None:
    assert address_of({"address": "[::1]:9000"}, sink="s") == ("::1", 9000)
    with pytest.raises(
        SettingsError, match="sink 's': 'address' of its connection is 'host', expected HOST:PORT"
    ):
        address_of({"address": "host"}, sink="s")
    with pytest.raises(SettingsError):
        address_of({"address": "a:1,b:2"}, sink="s")
