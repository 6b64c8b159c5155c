"""Subscribers that do not read: their memory, how they are disconnected, and that no other waits for them."""

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import grpc
import psutil
import pytest

from bettong.client.subscriber import Subscriber
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.queued import subscribers_in
from bettong.v1 import subscribe_pb2 as pb
from bettong.v1.subscribe_pb2_grpc import SubscribeServiceStub
from tests.samples.result_frames import rows
from tests.servers.receiver_process import Feed, ReceiverProcess, Store
from tests.waiting import bound_s, eventually

MEGABYTE = 1_000_000
MESSAGE = bytes(900_000)
MESSAGES = 60
STALLED = 48
STALL_MS = 3000
BYTES_MAX = 64 * 1024 * 1024
# Uncounted memory of subscribers: threads, consumers of the log, overhead of Python and C.
OTHER_BYTES = STALLED * 6 * MEGABYTE


@pytest.fixture
def name(unique_name: Callable[..., str]) -> str:
    return unique_name("stalls")


@pytest.fixture
def receiver(
    kafka: KafkaBroker, redis_server: RedisServer, tmp_path: Path, name: str, feed: Feed
) -> Iterator[ReceiverProcess]:
    feed.append(
        "raw",
        0,
        [
            rows([MESSAGE], origin="raw/notes-in/0", sequence=n, previous=n - 1)
            for n in range(1, MESSAGES + 1)
        ],
    )
    one = ReceiverProcess(
        name,
        tmp_path,
        kafka=kafka.bootstrap,
        redis=redis_server.url,
        BETTONG_RECEIVER_DIR=None,
        BETTONG_RECEIVER_STALL_MS=str(STALL_MS),
        BETTONG_RECEIVER_SUBSCRIBERS_PER_CLIENT_MAX="64",  # they count as one client, by their address
        BETTONG_RECEIVER_SUBSCRIBERS_BYTES_MAX=str(BYTES_MAX),
        BETTONG_RECEIVER_SUBSCRIBER_BYTES_MAX=str(1024 * 1024),
    )
    with one:
        yield one


def resident_bytes(receiver: ReceiverProcess) -> int:
    assert receiver.process is not None
    return psutil.Process(receiver.process.pid).memory_info().rss


@pytest.fixture
def stalled(receiver: ReceiverProcess) -> Iterator[Callable[[], Any]]:
    """Subscribes on its own connection, and reads nothing."""
    channels: list[grpc.Channel] = []

    def subscribe() -> Any:
        options = (
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.max_receive_message_length", -1),
            # Otherwise gRPC's client enlarges its window, on a busy machine until all unread bytes fit.
            ("grpc.http2.bdp_probe", 0),
        )
        channels.append(grpc.insecure_channel(receiver.address, options))
        return SubscribeServiceStub(channels[-1]).Subscribe(pb.SubscribeRequest(sink="raw"))

    yield subscribe
    for channel in channels:
        channel.close()


def status_of(call: Any) -> tuple[grpc.StatusCode, str, int]:
    """Reads to the end; returns the status, and the offset of the last position received."""
    offset = 0
    try:
        for response in call:
            if response.position.partition == 0:
                offset = response.position.offset
    except grpc.RpcError as error:
        return error.code(), error.details() or "", offset
    raise AssertionError("the call ended well")


@pytest.mark.timely
def test_many_subscribers_that_do_not_read_stay_within_the_bound_and_nobody_waits_for_them(
    receiver: ReceiverProcess, stalled: Callable[[], Any]
) -> None:
    before = peak = resident_bytes(receiver)

    def admitted() -> Any:
        """A stalled subscriber that was admitted; None while the earlier ones still hold all bytes for subscribers."""
        nonlocal peak
        peak = max(peak, resident_bytes(receiver))
        call = stalled()
        try:
            next(call)
        except grpc.RpcError as error:
            if "BETTONG_RECEIVER_SUBSCRIBERS_BYTES_MAX" not in (error.details() or ""):
                raise
            return None
        return call

    calls = [eventually(admitted) for _ in range(STALLED)]
    begun_s = time.monotonic()
    with Subscriber(receiver.address, "raw") as results:
        seen = 0
        for result in results:
            peak = max(peak, resident_bytes(receiver))
            seen += len(result.messages)
            if seen == MESSAGES:
                break
    took_s = time.monotonic() - begun_s

    def gone() -> bool:
        nonlocal peak
        peak = max(peak, resident_bytes(receiver))
        return receiver.log.read_text().count("subscriber disconnected") == receiver.log.read_text().count(
            "subscriber connected"
        )

    eventually(gone, seconds=60)
    assert (
        len({status_of(call)[0] for call in calls} - {grpc.StatusCode.UNAVAILABLE, grpc.StatusCode.ABORTED})
        == 0
    )
    assert peak - before < BYTES_MAX + OTHER_BYTES, f"{before / MEGABYTE:.0f} to {peak / MEGABYTE:.0f} MB"
    assert took_s < bound_s(20), f"{took_s:.1f} s"


def test_a_subscriber_that_reads_again_learns_what_it_was_sent_and_resumes_from_there(
    receiver: ReceiverProcess, stalled: Callable[[], Any]
) -> None:
    call = stalled()
    eventually(lambda: receiver.said("subscriber does not read"), seconds=60)
    code, text, offset = status_of(call)
    assert code is grpc.StatusCode.ABORTED
    assert "this subscriber of 'raw' has not read for 3 s" in text
    assert "subscribe again from the last position received" in text
    assert 0 < offset < MESSAGES
    # The response that was being sent arrived, too.
    assert f"partition 0 offset {offset - 1}" in text
    position = pb.Position(partition=0, offset=offset, highest={"raw/notes-in/0": offset})
    with Subscriber(receiver.address, "raw", [position]) as results:
        assert next(results).position.offset == offset + 1


def test_a_subscriber_that_never_reads_loses_its_connection(
    receiver: ReceiverProcess, stalled: Callable[[], Any], store: Store
) -> None:
    call = stalled()
    eventually(lambda: store.metrics().get("sessions") == "1")
    eventually(lambda: store.metrics().get("stalled_subscribers/raw") == "1", what="it shows as stalled")
    record = store.metrics()
    assert 0 < int(record["subscriber_lag/raw"]) <= MESSAGES
    (named,) = subscribers_in(record["subscribers"])
    assert (named.sink, named.lag) == ("raw", int(record["subscriber_lag/raw"]))
    assert (named.stalled_s >= 1, named.waiting_bytes >= len(MESSAGE)) == (True, True)
    eventually(lambda: store.metrics().get("sessions") == "0", seconds=60)
    code, _, _ = status_of(call)
    assert code is grpc.StatusCode.UNAVAILABLE
