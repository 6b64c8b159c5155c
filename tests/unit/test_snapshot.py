"""The bytes of a snapshot: whole and of this partition, or refused."""

from __future__ import annotations

import struct
from collections.abc import Callable

import crc32c
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bettong.errors import SnapshotError
from bettong.identifiers import PartitionId
from bettong.snapshots.snapshot import decode, encode
from bettong.v1.snapshot_pb2 import Counters, DeliveryTable, Heard, Sent, Snapshot

SNAPSHOT = Snapshot(
    application="app",
    stage="stage",
    partition=3,
    offset=12345,
    now_ns=10**18,
    delivery=DeliveryTable(heard=[Heard(origin="a/b", highest=7, age_ns=5)], age_ns=9, clock_ns=8),
    sent=[Sent(origin="s/a/3", partition=1, sequence=2**20)],
    states={"b": b"\0\1\2" * 10, "a": b"state"},
    counters=Counters(frames=1, messages=2),
)
ENCODED = encode(SNAPSHOT)


def read(data: bytes) -> Snapshot:
    return decode(data, application="app", partition=PartitionId("stage", 3))


def test_a_snapshot_comes_back_as_it_went_in() -> None:
    assert read(ENCODED) == SNAPSHOT


def test_the_same_state_has_the_same_bytes() -> None:
    other = Snapshot()
    other.CopyFrom(SNAPSHOT)
    del other.states["b"]
    other.states["b"] = SNAPSHOT.states["b"]
    assert encode(other) == ENCODED


def test_a_flipped_bit_anywhere_is_detected() -> None:
    for bit in range(len(ENCODED) * 8):
        damaged = bytearray(ENCODED)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(SnapshotError, match="snapshot of app/stage/3"):
            read(bytes(damaged))


@given(st.integers(0, len(ENCODED) - 1), st.binary(min_size=1, max_size=4))
def test_a_cut_or_longer_snapshot_is_detected(length: int, more: bytes) -> None:
    for damaged in (ENCODED[:length], ENCODED + more, more + ENCODED):
        with pytest.raises(SnapshotError):
            read(damaged)


@given(st.binary(max_size=100))
def test_any_bytes_are_refused(junk: bytes) -> None:
    with pytest.raises(SnapshotError):
        read(junk)


def test_bytes_that_are_no_protobuf_are_refused_though_their_checksum_is_right() -> None:
    body = b"\xff\xff\xff"
    with pytest.raises(SnapshotError, match="snapshot of app/stage/3"):
        read(struct.pack(">4sI", b"BTG2", crc32c.crc32c(body)) + body)


@pytest.mark.parametrize(
    ("application", "stage", "partition"), [("other", "stage", 3), ("app", "other", 3), ("app", "stage", 4)]
)
def test_a_snapshot_of_something_else_says_whose_it_is(application: str, stage: str, partition: int) -> None:
    with pytest.raises(
        SnapshotError, match=f"snapshot of {application}/{stage}/{partition}: it belongs to app/stage/3"
    ):
        decode(ENCODED, application=application, partition=PartitionId(stage, partition))


def test_a_snapshot_of_another_version_says_what_it_starts_with() -> None:
    with pytest.raises(SnapshotError, match="starts with b'BTG9', expected b'BTG2'"):
        read(b"BTG9" + ENCODED[4:])


def with_states(**states: bytes) -> Snapshot:
    large = Snapshot()
    large.CopyFrom(SNAPSHOT)
    for name, value in states.items():
        large.states[name] = value
    large.ended["a"] = b"keys that have ended"
    large.last_ns["b"] = b"a clock for each key"
    return large


@pytest.fixture
def protobuf_is_small(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if protobuf held a few hundred bytes, which the snapshot without its states needs."""
    monkeypatch.setattr("bettong.snapshots.snapshot._PROTOBUF_BYTES_MAX", 300)


@pytest.mark.usefixtures("protobuf_is_small")
def test_states_that_protobuf_cannot_hold_follow_it() -> None:
    large = with_states(c=bytes(range(256)) * 4, empty=b"")
    data = encode(large)
    assert (data[:4], ENCODED[:4]) == (b"BTG3", b"BTG2")
    assert read(data) == large
    assert encode(read(data)) == data
    assert encode(large) == data, "it is left as it was"


@pytest.mark.usefixtures("protobuf_is_small")
def test_damage_of_a_large_snapshot_is_detected() -> None:
    data = encode(with_states(c=bytes(400)))
    for bit in range(0, len(data) * 8, 7):
        damaged = bytearray(data)
        damaged[bit // 8] ^= 1 << bit % 8
        with pytest.raises(SnapshotError, match="snapshot of app/stage/3"):
            read(bytes(damaged))


@pytest.mark.usefixtures("protobuf_is_small")
@pytest.mark.parametrize(
    ("change", "text"),
    [
        (lambda body: body[:-1], "are expected where"),
        (lambda body: body[:3], "a length is missing"),
        (lambda body: body + b"\0" * 9, "9 bytes follow its states"),
        (lambda body: b"\xff" * 8 + body[8:], "are expected where"),
    ],
)
def test_wrong_lengths_are_refused_though_the_checksum_is_right(
    change: Callable[[bytes], bytes], text: str
) -> None:
    body = change(encode(with_states(c=bytes(400)))[8:])
    with pytest.raises(SnapshotError, match=f"snapshot of app/stage/3: .*{text}"):
        read(struct.pack(">4sI", b"BTG3", crc32c.crc32c(body)) + body)


def test_a_snapshot_too_large_without_its_states_says_whose_it_is_and_the_remedy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("bettong.snapshots.snapshot._PROTOBUF_BYTES_MAX", 20)
    with pytest.raises(
        SnapshotError,
        match=r"snapshot of app/stage/3, without its states: .* at most 20 .* use more partitions",
    ):
        encode(SNAPSHOT)
