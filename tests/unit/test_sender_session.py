"""The records in the log that a client's frames become."""

import dataclasses
from collections.abc import Callable

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bettong import Application, each
from bettong.application.on_error import OnError
from bettong.frames.frame import FrameKind
from bettong.frames.refused import Refused
from bettong.identifiers import Origin, SequenceNumber
from bettong.ingest.refusal import Code, Refusal
from bettong.ingest.session import Session, SourceRoute
from bettong.metrics import DEAD_LETTER_LAST
from bettong.routing import partition_of
from bettong.v1.frame_pb2 import Rows
from bettong.v1.ingest_pb2 import Hello, IngestFrame
from bettong_sender.status import SenderStatus
from tests.samples.sender import (
    FRAME_BYTES_MAX,
    PARTITIONS,
    Line,
    MemoryLog,
    Order,
    as_row,
    columns_frame,
    numbers_in,
    orders,
    refused_in,
    route,
    rows_frame,
    source,
)

STAGE, DEAD_LETTERS = "shop.stage.orders", "shop.dead-letters"
# The partition of refused messages of `session()`.
HOME = STAGE, partition_of("orders/feed-1", PARTITIONS)
ONE_ORDER = Rows(messages=[as_row(Order(1, 2, "AAAA", 3.0))])


def session(
    of: SourceRoute | None = None,
    *,
    acknowledged: int = 0,
    stream: str = "feed-1",
    ends: list[int] | None = None,
) -> Session:
    hello = Hello(source="orders", stream=stream, acknowledged=acknowledged)
    return Session(of or route(), hello, ends or [-1] * PARTITIONS)


def refusal_of(call: Callable[[], object]) -> Refusal:
    with pytest.raises(Refusal) as caught:
        call()
    return caught.value


def test_what_is_known_to_be_durable_is_not_appended_again() -> None:
    ours, log = session(acknowledged=2), MemoryLog()
    log.extend(ours.open(0, 9, SequenceNumber(5)).appends)
    for sequence in (3, 5):
        assert ours.take(rows_frame(sequence, orders([sequence], "AAAA")), 0, 10).appends == []
    log.extend(ours.take(rows_frame(6, orders([6], "AAAA")), 0, 11).appends)
    (data,) = log.data[STAGE, partition_of("AAAA", PARTITIONS)]
    assert (data.sequence, data.previous) == (6, 5)
    refusal = refusal_of(lambda: ours.take(rows_frame(5, orders([5])), 0, 12))
    assert refusal.code is Code.INVALID_ARGUMENT


def test_a_claim_that_is_not_known_to_be_durable_is_ignored_and_what_the_client_sends_is_taken() -> None:
    ours, log = session(acknowledged=2**61), MemoryLog()
    log.extend(ours.open(0, 9, SequenceNumber(5)).appends)
    log.extend(ours.take(rows_frame(2**61 + 1, orders([1], "AAAA")), 0, 10).appends)
    (data,) = log.data[STAGE, partition_of("AAAA", PARTITIONS)]
    assert (data.sequence, data.previous) == (2**61 + 1, 5)
    assert {each.previous for frames in log.frames.values() for each in frames} == {5}
    assert refusal_of(lambda: ours.take(rows_frame(2**61, orders([1])), 0, 10)).code is Code.INVALID_ARGUMENT


@settings(deadline=None)  # the first example compiles
@given(st.lists(st.integers(0, 1000), min_size=1, max_size=40), st.sampled_from(["columns", "rows"]))
def test_each_message_goes_to_the_partition_of_its_key_once_and_in_order(
    numbers: list[int], form: str
) -> None:
    here, messages, log = route(), orders(numbers), MemoryLog()
    frame = columns_frame(here.source, 3, messages) if form == "columns" else rows_frame(3, messages)
    log.extend(session(here).take(frame, 0, 9).appends)
    for partition in range(PARTITIONS):
        expected = [each.number for each in messages if partition_of(each.symbol, PARTITIONS) == partition]
        frames = log.data[STAGE, partition]
        assert [number for each in frames for number in numbers_in(here.source, each)] == expected
        assert len(frames) == (1 if expected else 0)
        assert [each.count for each in frames] == ([len(expected)] if expected else [])


@pytest.mark.parametrize("form", ["rows", "columns"])
def test_a_frame_is_divided_by_all_fields_of_a_key(form: str) -> None:
    here, messages, log = route(source(("symbol", "number"))), orders(range(60)), MemoryLog()
    frame = columns_frame(here.source, 3, messages) if form == "columns" else rows_frame(3, messages)
    log.extend(session(here).take(frame, 0, 9).appends)
    for partition in range(PARTITIONS):
        expected = [
            each.number
            for each in messages
            if partition_of((each.symbol, each.number), PARTITIONS) == partition
        ]
        frames = log.data[STAGE, partition]
        assert [number for each in frames for number in numbers_in(here.source, each)] == expected


@pytest.mark.parametrize("step", [1, 2, PARTITIONS, 4096])
def test_frames_without_a_key_are_spread_over_all_partitions_however_they_are_numbered(step: int) -> None:
    """`bettong send` numbers frames by their last message: 4096, 8192 ..."""
    keyless = route(source(key=None))
    counts = [0] * PARTITIONS
    ours, again = session(keyless), session(keyless)
    for number in range(1, 201):
        frame = columns_frame(keyless.source, number * step, orders([number]))
        *_, append = ours.take(frame, 0, 9).appends
        assert append.partition == again.take(frame, 0, 9).appends[-1].partition, "a resend goes there too"
        counts[append.partition] += 1
    assert min(counts) > 200 / PARTITIONS / 2


def test_a_frame_carries_its_clients_number_and_what_was_sent_to_the_partition_before() -> None:
    here, log = route(), MemoryLog()
    ours = session(here, acknowledged=4)
    schema = here.source.schema
    for sequence, symbol in ((5, "AAAA"), (7, "BBBB"), (9, "AAAA")):
        log.extend(ours.take(rows_frame(sequence, orders([sequence], symbol)), 4, 100 + sequence).appends)
    first, second = log.data[STAGE, partition_of("AAAA", PARTITIONS)]
    assert (first.origin, first.sequence, first.previous) == ("orders/feed-1", 5, 4)
    assert (second.sequence, second.previous) == (9, 5)
    assert (second.kind, second.schema, second.count) == (FrameKind.DATA, schema.fingerprint, 1)
    assert (second.ingest_ns, second.sent_ns) == (109, 7)


def test_without_a_clock_of_the_client_the_senders_counts() -> None:
    frame = rows_frame(1, orders([1]))
    frame.sent_ns = 0
    log = MemoryLog()
    log.extend(session().take(frame, 0, 123).appends)
    assert [each.sent_ns for frames in log.data.values() for each in frames] == [123]


def test_without_a_key_a_whole_frame_goes_to_one_partition_and_a_resend_to_the_same() -> None:
    here = route(source(None))
    chosen = {}
    for sequence in range(1, 9):
        frame = rows_frame(sequence, orders(range(20)))
        *_, append = session(here).take(frame, 0, 9).appends
        *_, again = session(here, acknowledged=sequence - 1).take(frame, 0, 50).appends
        assert (append.topic, append.partition) == (again.topic, again.partition)
        chosen[sequence] = append.partition
    assert set(chosen.values()) == set(range(PARTITIONS))


@pytest.mark.parametrize("sent_ns", [0, 1, 2**63 - 1])
def test_what_can_be_a_time_is_taken(sent_ns: int) -> None:
    log = MemoryLog()
    log.extend(session().take(IngestFrame(sequence=1, sent_ns=sent_ns, rows=ONE_ORDER), 0, 9).appends)
    assert [each.sent_ns for frames in log.data.values() for each in frames] == [sent_ns or 9]


@pytest.mark.parametrize("sent_ns", [2**63, 2**64 - 2**62, 2**64 - 1], ids=["-2**63", "-2**62", "-1"])
def test_what_cannot_be_a_time_is_refused_with_the_field_and_its_bound(sent_ns: int) -> None:
    """With the sign that a client in another language may have given it."""
    refusal = refusal_of(
        lambda: session().take(IngestFrame(sequence=7, sent_ns=sent_ns, rows=ONE_ORDER), 0, 9)
    )
    assert refusal.code is Code.INVALID_ARGUMENT
    assert str(refusal) == (
        f"frame 7 of 'orders/feed-1': IngestFrame.sent_ns is {sent_ns}, expected Unix nanoseconds, at most"
        " 9223372036854775807 (in the year 2262), or 0"
    )


def test_a_source_that_skips_leaves_no_dead_letters_and_counts_what_it_left_out() -> None:
    of = session(route(source(on_error="skip")))
    taken = of.take(rows_frame(2, orders(range(3)), spoilt=[b"short", b"shorter"]), 0, 9)
    assert (taken.messages, taken.refused, taken.skipped) == (5, (), 2)
    assert {append.topic for append in taken.appends} == {STAGE}
    nothing = of.take(rows_frame(3, [], spoilt=[b"short"]), 0, 9)
    assert (nothing.appends, nothing.skipped) == ([], 1)


def test_a_source_that_stops_refuses_the_whole_frame_and_names_the_first_message() -> None:
    of = session(route(source(on_error="stop")))
    frame = rows_frame(2, orders(range(3)), spoilt=[b"short", b"shorter"])
    refusal = refusal_of(lambda: of.take(frame, 0, 9))
    assert refusal.code is Code.INVALID_ARGUMENT
    assert str(refusal) == (
        "frame 2 of 'orders/feed-1', message 3: 5 bytes, expected 18; 2 message(s) refused, and with them the"
        ' frame, for the source has on_error="stop": correct them, and send the frame again'
    )


@pytest.mark.parametrize("on_error", ["stop", "dead-letter"])
def test_a_reason_that_is_no_unicode_text_is_reported_escaped(on_error: OnError) -> None:
    def fails(row: bytes) -> Line:
        raise ValueError(row.decode(errors="surrogateescape"))

    app = Application("shop")
    app.source("orders", schema=Line, decoder=each(fails), on_error=on_error).sink("all")
    of, frame = session(route(app.sources[0])), IngestFrame(sequence=1, rows=Rows(messages=[b"no \x80"]))
    if on_error == "stop":
        said = str(refusal_of(lambda: of.take(frame, 0, 9)))
    else:
        status = SenderStatus(since_s=1)
        status.count_frame(of.take(frame, 0, 9), Origin("orders/feed-1"), SequenceNumber(1))
        said = str(status.metrics()[DEAD_LETTER_LAST.name])
    assert b"ValueError: no \\udc80" in said.encode()


def test_a_refused_message_says_whether_it_is_as_it_was_received_and_whole() -> None:
    def fails(order: Order) -> str:
        raise KeyError(order.number)

    log = MemoryLog()
    of = session(route(source(fails), frame_bytes_max=400))
    log.extend(of.take(rows_frame(1, orders([7]), spoilt=[b"x" * 300]), 0, 9).appends)
    keyless, raw = refused_in(log.data[HOME][0])
    assert (raw.as_received, raw.truncated, raw.message) == (True, True, b"x" * 200)
    assert (keyless.as_received, keyless.truncated) == (False, False)


def test_messages_that_the_decoder_refuses_go_with_the_others_to_the_stage() -> None:
    here, log = route(), MemoryLog()
    good = orders([1, 2], "AAAA")
    rows = [b"short", as_row(good[0]), b"\x02" + as_row(good[0])[1:], as_row(good[1])]
    taken = session(here, acknowledged=1).take(IngestFrame(sequence=2, rows=Rows(messages=rows)), 1, 9)
    log.extend(taken.appends)
    (data,) = log.data[STAGE, partition_of("AAAA", PARTITIONS)]
    assert numbers_in(here.source, data) == [1, 2]
    (with_refused,) = log.data[HOME]
    assert (with_refused.origin, with_refused.sequence, with_refused.previous) == ("orders/feed-1", 2, 1)
    assert (with_refused.count, with_refused.columns) == (0, None), "it is another partition"
    assert refused_in(with_refused) == [
        Refused(0, "5 bytes, expected 18", rows[0], as_received=True),
        Refused(2, "starts with 02, expected 01", rows[2], as_received=True),
    ]
    assert (taken.messages, len(taken.refused)) == (4, 2)


def test_a_partition_gets_messages_and_refused_ones_in_one_record() -> None:
    here, log = route(source(None)), MemoryLog()
    ours = session(here)
    alone = 0
    for sequence in range(1, 20):
        appends = ours.take(rows_frame(sequence, orders([sequence]), spoilt=[b"?"]), 0, 9).appends
        alone += sum(not one.opens for one in appends) == 1
        log.extend(appends)
    together = [frame for frame in log.data[HOME] if frame.columns is not None]
    assert [refused_in(frame)[0].index for frame in together] == [1] * alone
    assert len(log.data[HOME]) == 19
    assert alone


def test_a_frame_of_unreadable_messages_alone_is_taken() -> None:
    taken = session().take(rows_frame(1, [], spoilt=[b"?", b"!"]), 0, 9)
    assert {(append.topic, append.partition) for append in taken.appends} == {HOME}


def test_only_a_stream_that_is_named_after_a_dead_letter_is_marked_in_their_topic() -> None:
    log = MemoryLog()
    for stream in ("dead-letter.0.12.x", "dead-letter", "feed.0.12.3"):
        log.extend(session(stream=stream).open(0, 9, SequenceNumber(0)).appends)
    assert (DEAD_LETTERS, 0) not in log.frames
    log.extend(session(stream="dead-letter.3.12.0").open(0, 9, SequenceNumber(0)).appends)
    log.extend(session(stream="dead-letter.3.12.0", acknowledged=1).open(0, 10, SequenceNumber(1)).appends)
    log.extend(session(stream="dead-letter.3.12.0").open(0, 11, SequenceNumber(1)).appends)
    assert [
        (each.kind, each.origin, each.previous, each.ingest_ns) for each in log.frames[DEAD_LETTERS, 0]
    ] == [
        (FrameKind.SENT_AGAIN, "orders/dead-letter.3.12.0", durable, now_ns)
        for durable, now_ns in ((0, 9), (1, 10), (1, 11))
    ]


def test_a_key_function_that_raises_makes_dead_letters_of_its_messages_as_json() -> None:
    def key(order: Order) -> str:
        if order.number % 2:
            raise ValueError(f"no key for {order.number}")
        return order.symbol

    here, log = route(source(key)), MemoryLog()
    frame = rows_frame(1, orders([2, 3, 4], "AAAA"), spoilt=[b"?"])
    taken = session(here).take(frame, 0, 9)
    log.extend(taken.appends)
    (data,) = log.data[STAGE, partition_of("AAAA", PARTITIONS)]
    assert numbers_in(here.source, data) == [2, 4]
    first, second = refused_in(log.data[HOME][0])
    assert (first.index, second.index) == (1, 3)
    assert first.reason == "the key function raised ValueError: no key for 3"
    assert first.message == b'{"side":1,"number":3,"symbol":"AAAA","price":0.75}'


def test_a_key_of_a_wrong_type_is_a_dead_letter() -> None:
    taken = session(route(source(lambda order: order.price))).take(rows_frame(1, orders([1])), 0, 9)
    assert [each.reason for each in taken.refused] == [
        "the key function raised TypeError: a key must be str, int, bytes or tuple, not float"
    ]


def test_a_decoder_that_returns_what_does_not_fit_refuses_the_message() -> None:
    app = Application("shop")
    app.source(
        "orders",
        schema=Order,
        key="symbol",
        decoder=each(lambda row: Order(1, int(row), "TOOLONG"[: int(row)], 1.0)),
    )
    (orders_,) = app.sources
    here, log = route(orders_), MemoryLog()
    taken = session(here).take(IngestFrame(sequence=1, rows=Rows(messages=[b"3", b"x", b"6", b"4"])), 0, 9)
    log.extend(taken.appends)
    assert sorted(
        number
        for (topic, _), frames in log.data.items()
        if topic == STAGE
        for frame in frames
        for number in numbers_in(orders_, frame)
    ) == [3, 4]
    assert [refused.index for refused in taken.refused] == [1, 2]
    assert "invalid literal" in taken.refused[0].reason
    assert "longer than 4 bytes" in taken.refused[1].reason


@pytest.mark.parametrize("sequence", [0, 1, 5])
def test_a_sequence_that_does_not_grow_is_refused(sequence: int) -> None:
    ours = session(acknowledged=5)
    refusal = refusal_of(lambda: ours.take(rows_frame(sequence, orders([1])), 5, 9))
    assert refusal.code is Code.INVALID_ARGUMENT
    assert f"frame {sequence} of 'orders/feed-1': sequences grow, and the last one was 5" in str(refusal)


@pytest.mark.parametrize("stream", ["", "a/b", "a b", "ü", "x" * 129, "a\n"])
def test_a_malformed_stream_name_is_refused(stream: str) -> None:
    refusal = refusal_of(lambda: session(stream=stream))
    assert refusal.code is Code.INVALID_ARGUMENT
    assert "expected 1 to 128 letters" in str(refusal)


@pytest.mark.parametrize("frame", [IngestFrame(sequence=1), IngestFrame(sequence=1, rows=Rows())])
def test_an_empty_frame_is_refused(frame: IngestFrame) -> None:
    refusal = refusal_of(lambda: session().take(frame, 0, 9))
    assert refusal.code is Code.INVALID_ARGUMENT
    assert "holds no messages; send at least one" in str(refusal)


def test_rows_for_a_source_without_a_decoder_are_refused() -> None:
    here = route(source(decodes=False))
    refusal = refusal_of(lambda: session(here).take(rows_frame(1, orders([1])), 0, 9))
    assert refusal.code is Code.INVALID_ARGUMENT
    assert "takes no rows, for it has no decoder; send columns" in str(refusal)


def test_a_frame_beyond_the_limit_is_refused_and_one_at_it_is_taken() -> None:
    few = rows_frame(1, orders(range(100)))
    size = few.rows.ByteSize()
    session(route(frame_bytes_max=size)).take(few, 0, 9)
    refusal = refusal_of(lambda: session(route(frame_bytes_max=size - 1)).take(few, 0, 9))
    assert refusal.code is Code.RESOURCE_EXHAUSTED
    assert f"has {size} bytes, at most {size - 1} are taken (BETTONG_FRAME_BYTES_MAX)" in str(refusal)


def test_rows_that_outgrow_the_limit_as_columns_are_refused() -> None:
    app = Application("shop")

    @dataclasses.dataclass
    class Word:
        text: str

    app.source("words", schema=Word, decoder=each(lambda row: Word(row.decode() * 1000)))
    here = dataclasses.replace(route(frame_bytes_max=10_000), source=app.sources[0])
    frame = IngestFrame(sequence=1, rows=Rows(messages=[b"abcd"] * 5))
    refusal = refusal_of(lambda: session(here).take(frame, 0, 9))
    assert refusal.code is Code.RESOURCE_EXHAUSTED
    assert "as columns, at most 10000 are taken" in str(refusal)


def test_one_unreadable_message_as_large_as_a_frame_keeps_its_first_half() -> None:
    message = b"?" * (FRAME_BYTES_MAX - 100)
    log = MemoryLog()
    log.extend(session().take(rows_frame(1, [], spoilt=[message]), 0, 9).appends)
    (refused,) = refused_in(log.data[HOME][0])
    assert (refused.message, refused.truncated) == (message[: FRAME_BYTES_MAX // 2], True)
