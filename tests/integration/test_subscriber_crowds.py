"""One client that tries to exhaust a receiver: its subscriptions, its calls, its memory."""

import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from typing import Any

import grpc
import psutil
import pytest

from bettong.client import Credentials
from bettong.config.access import digest
from bettong.local.broker import KafkaBroker
from bettong.local.probes import grpc_serves
from bettong.local.redis_server import RedisServer
from bettong.v1 import subscribe_pb2 as pb
from bettong.v1.subscribe_pb2_grpc import SubscribeServiceStub
from bettong_receiver.service import REQUEST_BYTES_MAX, REQUESTS_BYTES_MAX
from bettong_receiver.servicer import SUBSCRIBE
from tests.samples.result_frames import rows
from tests.servers.half_sent import HalfSender, message
from tests.servers.receiver_process import Feed, ReceiverProcess
from tests.waiting import eventually

MEGABYTE = 1_000_000
ONE, OTHER = "the-token-of-one", "the-token-of-another"
TOKENS = f"""
[one]
sha256 = "{digest(ONE)}"
read = ["raw"]
[other]
sha256 = "{digest(OTHER)}"
read = ["raw"]
"""
SHARE = 2
# Clients without a token that send partial requests.
CONNECTIONS = 12
CALLS = 8
TURNS, TURNS_MAX = 4, 16
BYTES_PER_S = 10 * MEGABYTE
# Memory for bytes between two polls of a loaded machine, and for what the C library does not return.
OVERSHOOT_BYTES = 100 * MEGABYTE
METHODS = [SUBSCRIBE, "/grpc.health.v1.Health/Check", "/grpc.health.v1.Health/Watch"]


@pytest.fixture(scope="module")
def guarded(
    kafka: KafkaBroker,
    redis_server: RedisServer,
    tmp_path_factory: pytest.TempPathFactory,
    unique_name: Callable[..., str],
) -> Iterator[ReceiverProcess]:
    """A receiver that requires tokens, with one result in `raw`."""
    name, folder = unique_name("crowds"), tmp_path_factory.mktemp("receiver")
    tokens = folder / "tokens.toml"
    tokens.write_text(TOKENS)
    feed = Feed(name, kafka.bootstrap)
    feed.append("raw", 0, [rows([b"result"], origin="raw/notes-in/0", sequence=1, previous=0)])
    feed.close()
    with ReceiverProcess(
        name,
        folder,
        kafka=kafka.bootstrap,
        redis=redis_server.url,
        BETTONG_RECEIVER_DIR=None,
        BETTONG_TOKENS=str(tokens),
        BETTONG_RECEIVER_SUBSCRIBERS_PER_CLIENT_MAX=str(SHARE),
    ) as one:
        yield one


@pytest.fixture
def subscribed(guarded: ReceiverProcess) -> Iterator[Callable[[str], Any]]:
    """Subscribes with a token."""
    with ExitStack() as stack:

        def subscribe(token: str) -> Any:
            shown = Credentials(token=token)
            channel = stack.enter_context(shown.channel(guarded.address))
            request, metadata = pb.SubscribeRequest(sink="raw"), shown.metadata(guarded.address)
            return SubscribeServiceStub(channel).Subscribe(request, metadata=metadata, timeout=60.0)

        yield subscribe


def test_one_client_leaves_subscriptions_for_others(subscribed: Callable[[str], Any]) -> None:
    calls = [subscribed(ONE) for _ in range(SHARE)]
    for call in calls:
        next(call)
    last = subscribed(ONE)
    with pytest.raises(grpc.RpcError):
        next(last)
    assert last.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
    assert "token one has 2 subscriptions here" in last.details()
    assert "(BETTONG_RECEIVER_SUBSCRIBERS_PER_CLIENT_MAX); end some, or give clients" in last.details()
    assert next(subscribed(OTHER)).ByteSize()
    calls[0].cancel()

    def let_in() -> bool:
        try:
            return bool(next(subscribed(ONE)).ByteSize())
        except grpc.RpcError:
            return False

    eventually(let_in)


def serves_others(guarded: ReceiverProcess, subscribed: Callable[[str], Any]) -> None:
    assert grpc_serves(guarded.address)
    call = subscribed(OTHER)
    assert next(call).ByteSize()
    call.cancel()


@pytest.mark.parametrize("method", METHODS)
def test_half_sent_requests_leave_memory_and_calls_for_others(
    guarded: ReceiverProcess, subscribed: Callable[[str], Any], method: str
) -> None:
    assert guarded.process is not None
    process = psutil.Process(guarded.process.pid)
    over = threading.Event()
    seen = [process.memory_info().rss]

    def watch() -> None:
        while not over.wait(0.02):
            seen.append(process.memory_info().rss)

    port = int(guarded.address.rpartition(":")[2])
    half = message(bytes(REQUEST_BYTES_MAX - 100))[:-50]
    floods: list[HalfSender] = []
    freed_least = 1.5 * (REQUESTS_BYTES_MAX + OVERSHOOT_BYTES)
    with ExitStack() as stack:
        threads = stack.enter_context(ThreadPoolExecutor(CONNECTIONS + 1))
        stack.callback(over.set)  # before joining the threads, also after a failure
        watching = threads.submit(watch)
        for turn in range(TURNS_MAX):
            # On a busy machine a turn may end while the server still frees what others have sent.
            if turn >= TURNS and (method == SUBSCRIBE or sum(flood.sent for flood in floods) > freed_least):
                break
            newest = [
                stack.enter_context(HalfSender(port, bytes_per_s=BYTES_PER_S)) for _ in range(CONNECTIONS)
            ]
            for flood in newest:
                for _ in range(CALLS):
                    flood.call(method, half)
            floods += newest
            done = [threads.submit(flood.run, 0.5) for flood in newest]
            serves_others(guarded, subscribed)
            for each in done:
                each.result()
        for _ in range(4):
            flood = stack.enter_context(HalfSender(port, bytes_per_s=BYTES_PER_S))
            for _ in range(200):
                flood.call(method, half[:60])
            flood.run(0.2)
        serves_others(guarded, subscribed)
        over.set()
        watching.result()
    sent = sum(flood.sent for flood in floods)
    reported = (
        f"RSS {seen[0] / MEGABYTE:.0f}, at most {max(seen) / MEGABYTE:.0f} MB; sent {sent / MEGABYTE:.0f} MB"
    )
    sys.stderr.write(f"{reported}\n")
    assert max(seen) - seen[0] < REQUESTS_BYTES_MAX + OVERSHOOT_BYTES, reported
    if method == SUBSCRIBE:
        # The request of a call without a token is not read: one flow-control window each.
        assert sent < CONNECTIONS * CALLS * TURNS * 2 * 65_536, reported
    else:
        # Calls that are not closed stay open: what they sent would be held.
        assert sent > freed_least, reported
