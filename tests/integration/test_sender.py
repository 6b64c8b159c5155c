"""A sender process between a client of bare gRPC and a real Kafka."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import pytest

from bettong.frames.columns import Columns
from bettong.frames.frame import FrameKind
from bettong.frames.refused import Refused
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.routing import partition_of
from bettong.schema.schema import schema_of
from bettong.topics import dead_letter_topic, stage_topic
from bettong.v1.frame_pb2 import Rows
from bettong.v1.ingest_pb2 import IngestFrame, IngestRequest, ListSourcesRequest
from bettong.v1.ingest_pb2_grpc import IngestServiceStub
from tests.samples.sender import PARTITIONS, Order, as_row, orders, refused_in, rows_frame
from tests.servers.sender_process import (
    CREDITS,
    FRAME_BYTES_MAX,
    SESSIONS_MAX,
    BareSession,
    SenderProcess,
    frames_in,
    hello,
    opened,
    taken,
)
from tests.waiting import eventually

SCHEMA = schema_of(Order)


@pytest.fixture(scope="module")
def sender(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    unique_name: Callable[..., str],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[SenderProcess]:
    """Shared by the tests that do it no harm: each uses a stream of its own."""
    folder = tmp_path_factory.mktemp("sender")
    with SenderProcess(unique_name(), folder, kafka=kafka.bootstrap, redis=redis_server.url) as process:
        yield process


def orders_in(kafka: str, sender: SenderProcess, stream: str, source: str = "orders") -> dict[int, list[int]]:
    """The numbers of a stream's orders that a consumer takes, by partition."""
    topic = stage_topic(sender.name, source)
    return {
        partition: [
            order.number
            for frame in taken(frames)
            if frame.origin == f"{source}/{stream}" and frame.columns is not None
            for order in Columns.of_payload(SCHEMA, frame.columns).messages()
        ]
        for partition, frames in frames_in(kafka, topic).items()
    }


def expected(messages: list[Order]) -> dict[int, list[int]]:
    return {
        partition: [each.number for each in messages if partition_of(each.symbol, PARTITIONS) == partition]
        for partition in range(PARTITIONS)
    }


def refused(
    sender: SenderProcess, *frames: IngestFrame, source: str = "orders"
) -> tuple[grpc.StatusCode, str]:
    """How a session ends after these frames."""
    with opened(sender.address, source, "refused") as session:
        session.send(*frames)
        return session.status()


def test_what_is_acknowledged_lies_in_the_log_by_key_and_in_order(
    sender: SenderProcess, kafka: KafkaBroker
) -> None:
    messages = orders(range(300))
    with BareSession(sender.address, hello(stream="plain")) as session:
        welcome = session.welcome()
        assert (welcome.credits, welcome.frame_bytes_max) == (CREDITS, FRAME_BYTES_MAX)
        assert (welcome.source.name, welcome.source.takes_rows) == ("orders", True)
        for sequence in range(1, 4):
            session.send(rows_frame(sequence, messages[100 * sequence - 100 : 100 * sequence]))
        assert session.acknowledged(3).credits == 3
        session.finish()
    assert orders_in(kafka.bootstrap, sender, "plain") == expected(messages)
    topic = stage_topic(sender.name, "orders")
    for frames in frames_in(kafka.bootstrap, topic).values():
        first = next(frame for frame in frames if frame.origin == "orders/plain")
        assert (first.kind, first.previous) == (FrameKind.OPEN, 0)


def test_columns_are_taken_as_rows_are(sender: SenderProcess, kafka: KafkaBroker) -> None:
    messages = orders(range(100))
    with opened(sender.address, stream="columns") as session:
        columns = Columns.of_messages(SCHEMA, messages).payload()
        session.send(IngestFrame(sequence=1, columns=columns))
        session.acknowledged(1)
    assert orders_in(kafka.bootstrap, sender, "columns") == expected(messages)


def test_sources_can_be_listed(sender: SenderProcess) -> None:
    with grpc.insecure_channel(sender.address) as channel:
        sources = IngestServiceStub(channel).ListSources(ListSourcesRequest()).sources
    assert [(each.name, each.takes_rows) for each in sources] == [
        ("orders", True),
        ("lines", True),
        ("quotes", False),
        ("lenient", True),
        ("strict", True),
    ]
    assert sources[0].schema == SCHEMA.fingerprint


def test_a_frame_over_the_limit_is_refused_with_the_limit(sender: SenderProcess) -> None:
    code, text = refused(sender, IngestFrame(sequence=1, columns=bytes(FRAME_BYTES_MAX + 1)))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert f"has {FRAME_BYTES_MAX + 1} bytes, at most {FRAME_BYTES_MAX} are taken" in text


def test_a_frame_far_over_the_limit_is_refused_by_grpc(sender: SenderProcess) -> None:
    code, text = refused(sender, IngestFrame(sequence=1, columns=bytes(FRAME_BYTES_MAX + 2**21)))
    assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "larger than max" in text


def test_columns_of_another_schema_are_refused(sender: SenderProcess) -> None:
    lines = Columns.of_messages(SCHEMA, orders(range(5)))
    code, text = refused(sender, IngestFrame(sequence=1, columns=lines.payload()), source="lines")
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "columns of Line: 4 columns, expected 1" in text


def test_rows_for_a_source_without_a_decoder_are_refused(sender: SenderProcess) -> None:
    code, text = refused(sender, rows_frame(1, orders([1])), source="quotes")
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "takes no rows" in text


def refused_by(kafka: str, sender: SenderProcess, origin: str) -> list[tuple[int, Refused]]:
    """What the log holds of messages of an origin that its source refused, each with the number of its frame."""
    topic = stage_topic(sender.name, origin.partition("/")[0])
    return [
        (frame.sequence, each)
        for frames in frames_in(kafka, topic).values()
        for frame in taken([frame for frame in frames if frame.origin == origin])
        for each in refused_in(frame)
    ]


def test_a_frame_full_of_small_undecodable_messages_gets_its_receipt(
    sender: SenderProcess, kafka: KafkaBroker
) -> None:
    rows = [b"%d" % (number % 10) for number in range(FRAME_BYTES_MAX // 3)]
    with opened(sender.address, stream="garbage") as session:
        session.send(rows_frame(1, [], spoilt=rows))
        assert session.acknowledged(1).dead_letters == len(rows)
        session.finish()
    found = refused_by(kafka.bootstrap, sender, "orders/garbage")
    assert [each.message for _, each in found] == rows


def test_unreadable_rows_go_to_their_stage_and_the_stream_goes_on(
    sender: SenderProcess, kafka: KafkaBroker
) -> None:
    good = orders(range(10))
    before = int(sender.metrics().get("dead_letters", "0"))
    with opened(sender.address, stream="unreadable") as session:
        session.send(rows_frame(1, good[:5], spoilt=[b"not an order"]), rows_frame(2, good[5:]))
        assert session.acknowledged(2).dead_letters == 1
        session.finish()
    assert orders_in(kafka.bootstrap, sender, "unreadable") == expected(good)
    assert refused_by(kafka.bootstrap, sender, "orders/unreadable") == [
        (1, Refused(5, "12 bytes, expected 18", b"not an order", as_received=True))
    ]
    dead_letters = frames_in(kafka.bootstrap, dead_letter_topic(sender.name))
    assert not any(dead_letters.values()), (
        "that the stage makes of it; no client's session leaves anything there"
    )
    eventually(lambda: int(sender.metrics()["dead_letters"]) > before)
    assert "12 bytes, expected 18 (orders/unreadable, frame 1" in sender.metrics()["dead_letter_last"]


def test_a_source_that_skips_counts_unreadable_rows_and_gives_receipts_without_a_record(
    sender: SenderProcess, kafka: KafkaBroker
) -> None:
    good = orders(range(10))
    before = int(sender.metrics().get("skipped", "0"))
    with opened(sender.address, "lenient", "skips") as session:
        session.send(rows_frame(1, good, spoilt=[b"not an order"]), rows_frame(2, [], spoilt=[b"nor this"]))
        assert session.acknowledged(2).dead_letters == 0
        session.finish()
    assert orders_in(kafka.bootstrap, sender, "skips", "lenient") == expected(good)
    assert refused_by(kafka.bootstrap, sender, "lenient/skips") == []
    eventually(lambda: int(sender.metrics()["skipped"]) == before + 2)


def test_a_source_that_stops_refuses_the_frame_and_takes_it_when_it_is_mended(
    sender: SenderProcess, kafka: KafkaBroker
) -> None:
    good = orders(range(10))
    with opened(sender.address, "strict", "stops") as session:
        session.send(rows_frame(1, good[:5]))
        session.acknowledged(1)
        session.send(rows_frame(2, good[5:], spoilt=[b"not an order"]))
        code, text = session.status()
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert "frame 2 of 'strict/stops', message 5: 12 bytes, expected 18" in text
    with BareSession(sender.address, hello("strict", "stops", acknowledged=1)) as session:
        session.welcome()
        session.send(rows_frame(2, good[5:]))
        session.acknowledged(2)
    assert orders_in(kafka.bootstrap, sender, "stops", "strict") == expected(good)


def test_an_unknown_source_is_not_found(sender: SenderProcess) -> None:
    with BareSession(sender.address, hello("trades")) as session:
        code, text = session.status()
    assert code is grpc.StatusCode.NOT_FOUND
    assert text.endswith("has no source 'trades'; it has lenient, lines, orders, quotes, strict")


@pytest.mark.parametrize(
    ("requests", "reason"),
    [
        ([IngestRequest(frame=rows_frame(1, orders([1])))], "the first message of a session must be a hello"),
        ([hello(), hello()], "say hello once"),
        ([hello(), IngestRequest(frame=IngestFrame(sequence=1))], "holds no messages"),
        ([hello(stream="a/b")], "expected 1 to 128 letters"),
        (
            [hello(stream="behind", acknowledged=7), IngestRequest(frame=rows_frame(7, orders([1])))],
            "the last one was 7",
        ),
    ],
)
def test_a_session_against_the_contract_is_refused(
    sender: SenderProcess, requests: list[IngestRequest], reason: str
) -> None:
    with BareSession(sender.address, *requests) as session:
        code, text = session.status()
    assert code is grpc.StatusCode.INVALID_ARGUMENT
    assert reason in text


def test_what_came_before_a_refused_frame_is_receipted_first(sender: SenderProcess) -> None:
    with opened(sender.address, stream="half") as session:
        session.send(rows_frame(1, orders([1])), IngestFrame(sequence=2))
        assert session.acknowledged(1).acknowledged == 1
        assert session.status()[0] is grpc.StatusCode.INVALID_ARGUMENT


def test_one_session_too_many_is_refused_until_another_ends(sender: SenderProcess) -> None:
    eventually(lambda: sender.metrics()["sessions"] == "0")
    with ExitStack() as stack:
        sessions = [
            stack.enter_context(opened(sender.address, stream=f"many-{number}"))
            for number in range(SESSIONS_MAX)
        ]
        with BareSession(sender.address, hello(stream="more")) as session:
            code, text = session.status()
        assert code is grpc.StatusCode.RESOURCE_EXHAUSTED
        assert "BETTONG_SENDER_SESSIONS_MAX" in text
        eventually(lambda: sender.metrics()["sessions"] == str(SESSIONS_MAX))
        sessions[0].close()
        eventually(lambda: sender.metrics()["sessions"] == str(SESSIONS_MAX - 1))
        with opened(sender.address, stream="more"):
            pass
    eventually(lambda: sender.metrics()["sessions"] == "0", what="there is room for the next test")


def test_a_client_that_vanishes_comes_back_and_each_message_counts_once(
    sender: SenderProcess, kafka: KafkaBroker
) -> None:
    messages = orders(range(40))
    frames = [rows_frame(n, messages[10 * n - 10 : 10 * n]) for n in range(1, 5)]
    with opened(sender.address, stream="vanishing") as session:
        session.send(*frames[:3])
        acknowledged = session.receipt().acknowledged
    with BareSession(sender.address, hello(stream="vanishing", acknowledged=acknowledged)) as session:
        session.welcome()
        session.send(*frames[acknowledged:])
        session.acknowledged(4)
    assert orders_in(kafka.bootstrap, sender, "vanishing") == expected(messages)


def test_live_metrics_report_state_and_counts(sender: SenderProcess) -> None:
    before = int(sender.metrics()["messages"])
    with opened(sender.address, stream="counted") as session:
        session.send(rows_frame(1, orders(range(25))))
        session.acknowledged(1)
        # Metrics are written every 100 ms: `before` may be of a moment ago, and count less than there was.
        eventually(
            lambda: (
                int((metrics := sender.metrics())["messages"]) >= before + 25
                and int(metrics["sessions"]) >= 1
            )
        )
        metrics = sender.metrics()
    assert (metrics["state"], metrics["detail"]) == ("running", "")
    assert int(metrics["frames"]) >= 1


def test_lines_without_a_key_are_spread_by_frames(sender: SenderProcess, kafka: KafkaBroker) -> None:
    with opened(sender.address, "lines", "spread") as session:
        for sequence in range(1, CREDITS + 1):
            session.send(IngestFrame(sequence=sequence, rows=Rows(messages=[b"one", b"two"])))
        session.acknowledged(CREDITS)
    frames = frames_in(kafka.bootstrap, stage_topic(sender.name, "lines"))
    data = [
        [each.sequence for each in found if each.kind is FrameKind.DATA and each.origin == "lines/spread"]
        for found in frames.values()
    ]
    expected: list[list[int]] = [[] for _ in range(PARTITIONS)]
    for sequence in range(1, CREDITS + 1):
        expected[partition_of(f"lines/spread/{sequence}", PARTITIONS)].append(sequence)
    assert sorted(data) == sorted(expected)


def test_rows_are_read_as_columns_of_the_schema(sender: SenderProcess, kafka: KafkaBroker) -> None:
    (order,) = orders([77])
    with opened(sender.address, stream="typed") as session:
        session.send(IngestFrame(sequence=1, sent_ns=123, rows=Rows(messages=[as_row(order)])))
        session.acknowledged(1)
    frames = frames_in(kafka.bootstrap, stage_topic(sender.name, "orders"))
    (frame,) = [
        each
        for each in frames[partition_of(order.symbol, PARTITIONS)]
        if each.origin == "orders/typed" and each.kind is FrameKind.DATA
    ]
    assert frame.columns is not None
    assert Columns.of_payload(SCHEMA, frame.columns).messages() == [order]
    assert (frame.sent_ns, frame.schema, frame.count) == (123, SCHEMA.fingerprint, 1)
    assert frame.ingest_ns > 1_700_000_000 * 10**9


def test_a_second_sender_on_the_same_address_says_so_and_ends(
    sender: SenderProcess, kafka: KafkaBroker, redis_server: RedisServer, tmp_path: Path
) -> None:
    second = SenderProcess(
        sender.name,
        tmp_path,
        kafka=kafka.bootstrap,
        redis=redis_server.url,
        BETTONG_SENDER_LISTEN=sender.address,
    )
    second.launch()
    assert second.process is not None
    ending = second.process.wait(60.0)
    assert ending is not None
    assert ending.status == 4
    assert second.said(f"BETTONG_SENDER_LISTEN: cannot listen on {sender.address}")


def test_topics_with_other_partitions_end_the_sender_with_the_remedy(
    sender: SenderProcess, kafka: KafkaBroker, redis_server: RedisServer, tmp_path: Path
) -> None:
    second = SenderProcess(
        sender.name,
        tmp_path,
        kafka=kafka.bootstrap,
        redis=redis_server.url,
        BETTONG_PARTITIONS=str(PARTITIONS + 1),
    )
    second.launch()
    assert second.process is not None
    ending = second.process.wait(60.0)
    assert ending is not None
    assert ending.status == 5
    assert second.said("partitions")
