"""What a sender records of late messages: the same shares when sent again, and never more than fits a record."""

from __future__ import annotations

import contextlib
from dataclasses import replace

from hypothesis import given, settings
from hypothesis import strategies as st

from bettong import Application, each
from bettong.application.plan import plan
from bettong.config.reading import read
from bettong.config.sender import SenderSettings
from bettong.edges.kafka_log.sizes import value_bytes_max
from bettong.frames.frame import decode
from bettong.ingest.refusal import Refusal
from bettong.ingest.session import Session, SourceRoute, messages_that_fit
from bettong.v1.frame_pb2 import Rows
from bettong.v1.ingest_pb2 import Hello, IngestFrame
from bettong_sender.service import routes_of
from tests.samples.lateness import Client, Reading, decoded, judging, readings_in
from tests.unit.test_refused_messages import Word
from tests.unit.test_refused_messages import read as read_word

FRAME_BYTES_MAX = 16 * 1024

readings = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 50)), min_size=1, max_size=12).map(
    lambda found: [Reading(number, *each) for number, each in enumerate(found)]
)


@given(readings, readings)
def test_a_session_that_begins_anew_sends_the_same_shares_with_the_watermarks_that_it_knows(
    before: list[Reading], again: list[Reading]
) -> None:
    client = Client(judging(), 4)
    client.send(before)
    first, second = (decoded(each.send(again)) for each in (client, Client(judging(), 4)))
    shares = [
        {partition: readings_in(frame) for partition, frame in found if readings_in(frame)}
        for found in (first, second)
    ]
    assert shares[0] == shares[1]
    for partition, frame in second:
        if frame.message_watermarks:
            assert dict(first)[partition].message_watermarks, "a session that knows more records as much"


def time_of(word: Word) -> int:
    """Any, and the same for the same word."""
    return int.from_bytes(word.text.encode()[:5])


def words_session() -> Session:
    app = Application("app")
    app.source("words", schema=Word, decoder=each(read_word), event_time=time_of).sink("out")
    route = SourceRoute(
        app.sources[0],
        "app.stage.words",
        "app.dead-letters",
        1,
        FRAME_BYTES_MAX,
        messages_that_fit(FRAME_BYTES_MAX),
        needs_time=True,
        judges_lateness=True,
    )
    return Session(route, Hello(source="words", stream="feed"), [-1])


def check_fits(rows: list[bytes]) -> int:
    """How many messages of the record have a watermark."""
    frame = IngestFrame(sequence=1, rows=Rows(messages=rows))
    assert frame.rows.ByteSize() <= FRAME_BYTES_MAX
    assert len(rows) <= messages_that_fit(FRAME_BYTES_MAX)
    taken = words_session().take(frame, 0, 2**62)
    assert all(len(append.value) <= value_bytes_max(FRAME_BYTES_MAX) for append in taken.appends)
    assert taken.messages == len(rows)
    return max(len(decode(append.value).message_watermarks) for append in taken.appends) // 8


def test_watermarks_have_room_beside_messages_and_those_refused_for_reasons_of_their_own() -> None:
    good = [b"%c" % (122 - number % 25) for number in range(1400)]
    bad = [b"!%011d" % number for number in range(648)]
    assert check_fits(good + bad) == 1400


@settings(max_examples=25)
@given(
    st.lists(st.tuples(st.sampled_from([b"a", b"!", b"zz", b"!bad", b""]), st.integers(1, 1500)), max_size=8),
    st.integers(0, 200),
)
def test_whatever_a_client_may_send_is_a_record_that_the_log_takes(
    mix: list[tuple[bytes, int]], long: int
) -> None:
    rows = [row + b"%d" % index for row, count in mix for index in range(count)] + [b"!" * long]
    del rows[messages_that_fit(FRAME_BYTES_MAX) :]
    while Rows(messages=rows).ByteSize() > FRAME_BYTES_MAX:
        del rows[len(rows) * 3 // 4 :]
    # Short messages grow as columns: then the client sends fewer, with watermarks beside them or not.
    with contextlib.suppress(Refusal):
        check_fits(rows or [b"a"])


def test_a_client_is_told_how_many_messages_leave_room_where_lateness_is_judged() -> None:
    app = Application("shop")
    app.source("readings", schema=Reading, key="sensor", event_time="at").sink("all")
    planned = plan(app)
    for judges, expected in ((False, 65_536), (True, FRAME_BYTES_MAX // 8)):
        stages = (replace(planned.stages[0], judges_lateness=judges),)
        given_settings = read(SenderSettings, {"application": "app.py", "frame_bytes_max": FRAME_BYTES_MAX})
        (route,) = routes_of(replace(planned, stages=stages), given_settings).values()
        assert (route.judges_lateness, route.frame_messages_max) == (judges, expected)
