"""How a frame is read during which a sender crashed: message by message, some of them not at all."""

from collections.abc import Callable

import pytest

from bettong import Application, each
from bettong.application.on_error import OnError
from bettong.frames.columns import Columns
from bettong.ingest.care import Care
from bettong.ingest.refusal import Refusal
from bettong.ingest.session import Session, SourceRoute, Taken
from bettong.v1.frame_pb2 import Rows
from bettong.v1.ingest_pb2 import Hello, IngestFrame
from tests.samples.sender import Line, route

ROWS = [b"a", b"kills", b"b", b"\xff", b"c"]


def lines(key: str | Callable[[Line], str] | None = None, on_error: OnError = "dead-letter") -> SourceRoute:
    def decode(row: bytes) -> Line:
        if row == b"kills":
            raise AssertionError("it was read")
        return Line(row.decode())

    app = Application("shop")
    app.source("orders", schema=Line, decoder=each(decode), key=key, on_error=on_error).sink("all")
    return route(app.sources[0])


def read(
    of: SourceRoute, frame: IngestFrame, care: Care | None, oversized: dict[int, str] | None = None
) -> Taken:
    session = Session(of, Hello(source="orders", stream="feed"), [-1] * of.partitions)
    return session.number(session.read(frame, 2, oversized or {}, care), 0, 2)


def columns(of: SourceRoute, messages: list[Line]) -> IngestFrame:
    return IngestFrame(sequence=7, columns=Columns.of_messages(of.source.schema, messages).payload())


def rows(*messages: bytes) -> IngestFrame:
    return IngestFrame(sequence=7, rows=Rows(messages=messages))


def test_a_message_that_kills_is_refused_unread_and_the_others_are_reported_one_by_one() -> None:
    touched: list[int] = []
    taken = read(
        lines(), rows(*ROWS), Care(touched.append, {1: "it killed the sender"}), oversized={2: "too large"}
    )
    assert touched == [0, 3, 4]
    assert taken.messages == 5
    assert [(each.index, each.reason.split(":")[0]) for each in taken.refused] == [
        (1, "it killed the sender"),
        (2, "too large"),
        (3, "UnicodeDecodeError"),
    ]


def test_care_changes_nothing_of_what_a_frame_becomes() -> None:
    """A frame that was appended once without, and is sent again, must be the same."""
    of, frame = lines(key=lambda line: line.text), rows(b"a", b"b", b"\xff", b"c", b"a")
    plain, careful = (read(of, frame, care) for care in (None, Care(lambda _: None)))
    assert careful == plain
    assert sum(not one.opens for one in plain.appends) > 1


def test_all_of_a_frame_may_be_refused_unread() -> None:
    taken = read(lines(), rows(*ROWS), Care(lambda _: None, all_refused="it killed the sender"))
    assert [each.index for each in taken.refused] == list(range(5))
    assert sum(not one.opens for one in taken.appends) == 1


def test_columns_are_kept_from_the_key_function_too() -> None:
    def key(line: Line) -> str:
        assert line.text != "kills"
        return line.text

    of = lines(key)
    frame = columns(of, [Line("a"), Line("kills"), Line("b")])
    touched: list[int] = []
    taken = read(of, frame, Care(touched.append, {1: "it killed the sender"}))
    assert touched == [0, 2]
    assert [(each.index, each.message) for each in taken.refused] == [(1, b'{"text":"kills"}')]


@pytest.mark.parametrize("key", ["text", None])
def test_columns_that_no_code_of_users_sees_are_never_refused_for_deaths(key: str | None) -> None:
    of = lines(key)
    frame = columns(of, [Line("a")])
    assert read(of, frame, Care(lambda _: None, all_refused="it killed the sender")) == read(of, frame, None)


def test_where_errors_stop_a_stream_what_kills_stops_it() -> None:
    with pytest.raises(Refusal, match="message 1: it killed the sender"):
        read(lines(on_error="stop"), rows(*ROWS[:3]), Care(lambda _: None, {1: "it killed the sender"}))
    assert read(lines(on_error="skip"), rows(*ROWS[:3]), Care(lambda _: None, {1: "x"})).skipped == 1
