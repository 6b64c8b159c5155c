"""The client for feeding a source, against a real sender."""

import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass

import numpy as np
import pyarrow as pa
import pytest

from bettong.client import Sender
from bettong.errors import ClientError, RefusedError, SchemaError
from bettong.frames.columns import Columns
from bettong.frames.frame import FrameKind
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.schema.schema import schema_of
from bettong.topics import stage_topic
from tests.samples.sender import Line, Order, as_row, orders
from tests.servers.freezing import frozen
from tests.servers.sender_process import FRAME_BYTES_MAX, LEASE_MS, SenderProcess, frames_in, taken
from tests.waiting import bound_s, eventually

SCHEMA = schema_of(Order)


@pytest.fixture(scope="module")
def sender(
    own_process: KafkaBroker,
    redis_server: RedisServer,
    unique_name: Callable[..., str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SenderProcess]:
    """Shared by all tests: each uses a stream of its own."""
    own_process.start()
    folder = tmp_path_factory.mktemp("sender")
    with SenderProcess(unique_name(), folder, kafka=own_process.bootstrap, redis=redis_server.url) as process:
        yield process


def orders_in(kafka: KafkaBroker, sender: SenderProcess, stream: str, source: str = "orders") -> list[Order]:
    """The orders of a stream that consumers accept, by number."""
    topic = stage_topic(sender.name, source)
    found: list[Order] = [
        order
        for frames in frames_in(kafka.bootstrap, topic).values()
        for frame in taken(frames)
        if frame.origin == f"{source}/{stream}" and frame.columns is not None
        for order in Columns.of_payload(SCHEMA, frame.columns).messages()
    ]
    return sorted(found, key=lambda order: order.number)


def marks(kafka: KafkaBroker, sender: SenderProcess, stream: str) -> list[tuple[FrameKind, int]]:
    """The records of a stream in the log other than its messages."""
    found = frames_in(kafka.bootstrap, stage_topic(sender.name, "orders")).values()
    return [
        (frame.kind, frame.previous)
        for frames in found
        for frame in frames
        if frame.origin == f"orders/{stream}" and frame.kind is not FrameKind.DATA
    ]


def test_a_stream_that_was_given_no_name_ends_with_its_session_and_a_named_one_does_not(
    sender: SenderProcess, own_broker: KafkaBroker
) -> None:
    with Sender(sender.address, "orders") as ours, Sender(sender.address, "orders", "stays") as named:
        for each in (ours, named):
            each.send_messages(orders([1]))
            each.send_messages(orders([1]))
    eventually(lambda: (FrameKind.END, 2) in marks(own_broker, sender, ours.stream))
    assert {kind for kind, _ in marks(own_broker, sender, named.stream)} == {FrameKind.OPEN}


def test_rows_messages_and_columns_of_every_kind_arrive_alike(
    sender: SenderProcess, own_broker: KafkaBroker
) -> None:
    messages = orders(range(20))
    batch = Columns.of_messages(SCHEMA, messages).batch()
    arrays = {
        name: column.to_numpy(zero_copy_only=False)
        for name, column in zip(batch.schema.names, batch.columns, strict=True)
    }
    lists = {name: [getattr(order, name) for order in messages] for name in reversed(batch.schema.names)}
    forms: dict[str, Callable[[Sender], int]] = {
        "rows": lambda ours: ours.send_rows([as_row(order) for order in messages]),
        "messages": lambda ours: ours.send_messages(messages),
        "batch": lambda ours: ours.send_columns(batch),
        "wider": lambda ours: ours.send_columns(batch.append_column("more", pa.array(range(20)))),
        "numpy": lambda ours: ours.send_columns({**arrays, "symbol": arrays["symbol"].astype("S4")}),
        "lists": lambda ours: ours.send_columns(lists),
        "dicts": lambda ours: ours.send_messages([{"other": 1, **asdict(order)} for order in messages]),
    }
    for name, send in forms.items():
        with Sender(sender.address, "orders", name) as ours:
            assert send(ours) == 1
        assert ours.acknowledged == 1
        assert orders_in(own_broker, sender, name) == messages, name


def test_the_sender_says_what_the_source_takes(sender: SenderProcess) -> None:
    with Sender(sender.address, "quotes") as quotes:
        assert quotes.source.schema.equals(SCHEMA.arrow)
        assert (quotes.source.fingerprint, quotes.source.takes_rows) == (SCHEMA.fingerprint, False)
        assert quotes.source.frame_bytes_max == FRAME_BYTES_MAX


def test_streams_have_names_of_their_own_unless_given(sender: SenderProcess) -> None:
    with (
        Sender(sender.address, "orders") as first,
        Sender(sender.address, "orders", new_name=lambda: "chosen") as second,
    ):
        assert len(first.stream) == 32
        assert second.stream == "chosen"


def test_frames_may_be_numbered_and_dated_by_the_client(
    sender: SenderProcess, own_broker: KafkaBroker
) -> None:
    with Sender(sender.address, "orders", "dated", time_ns=lambda: 77) as ours:
        assert ours.send_messages(orders([1]), sequence=10, sent_ns=5) == 10
        assert ours.send_messages(orders([1])) == 11
        with pytest.raises(RefusedError, match="the last one was 11; send a higher sequence"):
            ours.send_messages(orders([1]), sequence=11)
    topic = stage_topic(sender.name, "orders")
    frames = [
        frame
        for each in frames_in(own_broker.bootstrap, topic).values()
        for frame in each
        if frame.origin == "orders/dated" and frame.count
    ]
    assert sorted((frame.sequence, frame.sent_ns) for frame in frames) == [(10, 5), (11, 77)]


def test_unreadable_messages_are_counted(sender: SenderProcess) -> None:
    with Sender(sender.address, "orders", "bad-rows") as ours:
        ours.send_rows([b"?", as_row(orders([1])[0]), b"!"])
        ours.flush()
        assert (ours.acknowledged, ours.dead_letters) == (1, 2)


@dataclass
class Stranger:
    """Has other fields than an order."""

    name: str


@pytest.mark.parametrize(
    ("send", "kind", "reason"),
    [
        (
            lambda ours: ours.send_messages([Stranger("x")]),
            SchemaError,
            "it has name string; expected side uint8",
        ),
        (lambda ours: ours.send_messages([]), SchemaError, "at least one"),
        (lambda ours: ours.send_messages(orders([1])[0]), SchemaError, "Order is no list of messages"),
        (lambda ours: ours.send_messages(each for each in orders([1])), SchemaError, "generator is no list"),
        (
            lambda ours: ours.send_messages([*orders([1]), None]),
            SchemaError,
            "message 1 is no Order as the first",
        ),
        (
            lambda ours: ours.send_messages([asdict(orders([1])[0]), {}]),
            SchemaError,
            "message 1 has no 'side'",
        ),
        (lambda ours: ours.send_messages([{"side": 1}]), SchemaError, "number, symbol, price missing"),
        (lambda ours: ours.send_rows("text"), SchemaError, "str is no list of rows"),
        (lambda ours: ours.send_rows([b"x", "text"]), SchemaError, "row 1 is str; expected bytes"),
        (lambda ours: ours.send_rows([b"x"], sequence=1.5), RefusedError, "sequence 1.5 .* whole numbers"),
        (lambda ours: ours.send_rows([b"x"], sequence=2**64), RefusedError, "whole numbers .* below 2"),
        (lambda ours: ours.send_rows([b"x"], sent_ns=-1), RefusedError, "sent_ns -1: .* Unix nanoseconds"),
        (lambda ours: ours.send_rows([]), SchemaError, "at least one"),
        (lambda ours: ours.send_columns({"side": np.ones(1)}), SchemaError, "number, symbol, price missing"),
        (lambda ours: ours.send_rows([bytes(FRAME_BYTES_MAX)]), RefusedError, "send fewer messages a frame"),
    ],
)
def test_what_a_source_does_not_take_is_refused_before_it_is_sent(
    sender: SenderProcess, send: Callable[[Sender], int], kind: type[Exception], reason: str
) -> None:
    with Sender(sender.address, "orders") as ours:
        with pytest.raises(kind, match=reason):
            send(ours)
        assert ours.send_messages(orders([1])) == 1


def test_rows_for_a_source_without_a_decoder_are_refused(sender: SenderProcess) -> None:
    with Sender(sender.address, "quotes") as ours, pytest.raises(RefusedError, match="takes no rows"):
        ours.send_rows([b"x"])


def test_an_unknown_source_is_refused_at_once(sender: SenderProcess) -> None:
    with pytest.raises(RefusedError, match=r"NOT_FOUND: .*it has lenient, lines, orders, quotes, strict"):
        Sender(sender.address, "trades")


def test_what_the_sender_refuses_for_good_ends_the_stream(sender: SenderProcess) -> None:
    ours = Sender(sender.address, "orders")
    ours._send_columns(b"no columns at all", 5, None, None)
    with pytest.raises(RefusedError, match="INVALID_ARGUMENT: frame 1 of source 'orders': columns of Order"):
        ours.flush()
    with pytest.raises(RefusedError, match="INVALID_ARGUMENT"):
        ours.send_messages(orders([1]))
    with pytest.raises(RefusedError, match="INVALID_ARGUMENT"):
        ours.close()


def test_a_stream_comes_back_by_its_name_with_what_it_holds_receipts_for(
    sender: SenderProcess, own_broker: KafkaBroker
) -> None:
    with Sender(sender.address, "orders", "named") as ours:
        ours.send_messages(orders([1]))
        ours.send_messages(orders([2]))
    with Sender(sender.address, "orders", "named", acknowledged=1) as ours:
        assert ours.send_messages(orders([2])) == 2
        assert ours.send_messages(orders([3])) == 3
    assert orders_in(own_broker, sender, "named") == orders([1, 2, 3])


@pytest.mark.timely
def test_a_client_that_is_started_again_takes_its_stream_from_one_that_hangs_and_waits_for_nobody(
    sender: SenderProcess, own_broker: KafkaBroker
) -> None:
    hangs = Sender(sender.address, "orders", "taken-over", client="feeder")
    hangs.send_messages(orders([1]))
    hangs.flush()
    with pytest.raises(RefusedError, match="ALREADY_EXISTS"):
        Sender(sender.address, "orders", "taken-over", client="stranger")
    begun_s = time.monotonic()
    with Sender(sender.address, "orders", "taken-over", client="feeder") as ours:
        assert time.monotonic() - begun_s < bound_s(LEASE_MS / 1000)
        assert ours.acknowledged == 1
        ours.send_messages(orders([2]), sequence=2)
        ours.flush()
        eventually(lambda: hangs._courier._failure is not None, what="it hears of it")
        with pytest.raises(RefusedError, match="ABORTED"):
            hangs.send_messages(orders([2]))
        ours.send_messages(orders([3]), sequence=3)
    with pytest.raises(RefusedError, match="ABORTED"):
        hangs.close()
    assert orders_in(own_broker, sender, "taken-over") == orders([1, 2, 3])


def test_a_connection_lost_again_and_again_loses_and_repeats_nothing(
    sender: SenderProcess, own_broker: KafkaBroker
) -> None:
    with Sender(sender.address, "orders", "cut") as ours:
        for number in range(60):
            ours.send_messages(orders(range(10 * number, 10 * number + 10)))
            if number % 15 == 7:
                ours._courier._call.cancel()  # type: ignore[union-attr]
    assert orders_in(own_broker, sender, "cut") == orders(range(600))


def test_a_sender_killed_in_the_middle_and_started_again_loses_and_repeats_nothing(
    sender: SenderProcess, own_broker: KafkaBroker
) -> None:
    with Sender(sender.address, "orders", "killed", reconnect_s=120.0) as ours:
        for number in range(20):
            ours.send_messages(orders(range(10 * number, 10 * number + 10)))
            if number == 9:
                sender.kill()
                sender.start()
    assert orders_in(own_broker, sender, "killed") == orders(range(200))


def test_orders_sent_one_at_a_time_share_frames_and_a_killed_sender_loses_and_repeats_none(
    sender: SenderProcess, own_broker: KafkaBroker
) -> None:
    """Of a stream without a name; some are in flight when the sender dies, some wait to be joined."""
    with Sender(sender.address, "orders", reconnect_s=120.0) as ours:
        for number in range(2000):
            ours.send_messages(orders([number]))
            if number in (500, 1200):
                sender.kill()
                sender.start()
        ours.flush(120)
        assert ours.acknowledged == ours.sequence == 2000
    assert orders_in(own_broker, sender, ours.stream) == orders(range(2000))
    frames = {
        frame.sequence
        for each in frames_in(own_broker.bootstrap, stage_topic(sender.name, "orders")).values()
        for frame in taken(each)
        if frame.origin == f"orders/{ours.stream}"
    }
    assert 4 < len(frames) < 1000


def test_without_credits_a_send_gives_up_in_time_and_goes_on_when_there_are_some(
    sender: SenderProcess, own_broker: KafkaBroker
) -> None:
    with Sender(sender.address, "orders", "patient", credit_wait_s=0.5) as ours:
        ours.send_messages(orders([0]))
        ours.flush()
        with frozen(own_broker):
            sent = [ours.send_messages(orders([number])) for number in range(1, ours.source.credits + 1)]
            with pytest.raises(ClientError, match=r"no credit for another frame after 0\.5 s \(connected\)"):
                ours.send_messages(orders([99]))
            with pytest.raises(ClientError, match=r"frames without a receipt after 0\.1 s"):
                ours.flush(0.1)
        ours.flush()
        assert ours.acknowledged == sent[-1]
        ours.send_messages(orders([99]))
    assert orders_in(own_broker, sender, "patient") == orders([0, 1, 2, 3, 4, 99])


def test_a_client_without_a_sender_gives_up_in_time() -> None:
    with pytest.raises(ClientError, match=r"127\.0\.0\.1:1, source 'orders': UNAVAILABLE.*tried for 1 s"):
        Sender("127.0.0.1:1", "orders", reconnect_s=1.0)


def test_leaving_by_an_error_does_not_wait_for_receipts(
    sender: SenderProcess, own_broker: KafkaBroker
) -> None:
    ours = Sender(sender.address, "orders", "left")

    def leave() -> None:
        with frozen(own_broker), ours:
            ours.send_messages(orders([1]))
            raise KeyError

    with pytest.raises(KeyError):
        leave()
    with pytest.raises(ClientError, match="is closed"):
        ours.send_messages(orders([2]))


def test_lines_are_messages_of_one_text(sender: SenderProcess) -> None:
    with Sender(sender.address, "lines") as ours:
        ours.send_columns({"text": ["one", "zwei", ""]})
        ours.send_messages([Line("three")])
        ours.send_columns({"text": pa.array(["vier"])})
    assert ours.acknowledged == 3
