"""Parsing and checking of a client's requests."""

import pytest

from bettong.identifiers import Origin
from bettong.ingest.refusal import Code, Refusal
from bettong.ingest.requests import HELLO_BYTES_MAX, read_frame, read_hello
from bettong.v1.frame_pb2 import Rows
from bettong.v1.ingest_pb2 import Hello, IngestFrame, IngestRequest

TEXT_CHARACTERS_MAX = 500


def hello(source: str = "orders", stream: str = "feed-1", client: str = "tester") -> bytes:
    return IngestRequest(hello=Hello(source=source, stream=stream, client=client)).SerializeToString()


def test_a_hello_is_read() -> None:
    assert read_hello(hello()) == Hello(source="orders", stream="feed-1", client="tester")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (hello(source="x" * 4_000_000), f"at most {HELLO_BYTES_MAX} are taken"),
        (hello(source="x" * 129), "Hello.source has 129 characters, expected at most 128"),
        (hello(client="x" * 129), "Hello.client has 129 characters, expected at most 128"),
        (hello(client="a\nb"), "expected printable characters"),
        (hello(stream="a/b"), "stream 'a/b' of source 'orders': expected 1 to 128 letters"),
        (hello(stream="x" * 3000), "expected 1 to 128 letters"),
        (hello(stream=""), "expected 1 to 128 letters"),
        (b"\xff\xff\xff", "is no IngestRequest"),
        (b"", "must be a hello"),
        (IngestRequest(frame=IngestFrame(sequence=1)).SerializeToString(), "this one was a frame"),
    ],
)
def test_a_request_that_is_no_hello_or_has_invalid_names_is_refused_in_few_words(
    data: bytes, words: str
) -> None:
    with pytest.raises(Refusal) as caught:
        read_hello(data)
    assert caught.value.code is Code.INVALID_ARGUMENT
    assert words in str(caught.value)
    assert len(str(caught.value)) < TEXT_CHARACTERS_MAX


def test_a_large_frame_in_place_of_a_hello_is_not_parsed() -> None:
    frame = IngestRequest(frame=IngestFrame(sequence=1, rows=Rows(messages=[b""] * 1000)))
    with pytest.raises(Refusal, match="this one was a frame"):
        read_hello(frame.SerializeToString()[:500])


@pytest.mark.parametrize("data", [hello(), b"", b"\x12\xff"])
def test_what_is_no_frame_is_refused(data: bytes) -> None:
    with pytest.raises(Refusal) as caught:
        read_frame(data, Origin("orders/feed-1"), messages_max=10)
    assert caught.value.code is Code.INVALID_ARGUMENT
    assert "'orders/feed-1'" in str(caught.value)
