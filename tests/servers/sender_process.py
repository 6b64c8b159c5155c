"""A sender as a process of its own, what it left in the log, and a client that speaks bare gRPC."""

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from queue import Queue

import grpc
from redis import Redis

from bettong.closing import Closing
from bettong.delivery import DeliveryTable, Verdict
from bettong.edges.kafka_log import LogAdmin, LogReader
from bettong.edges.redis_store import RedisStore
from bettong.frames.frame import Frame, FrameKind, decode
from bettong.v1.ingest_pb2 import Hello, IngestFrame, IngestRequest, Receipt, Welcome
from bettong.v1.ingest_pb2_grpc import IngestServiceStub
from tests.samples.sender import PARTITIONS
from tests.servers.service_process import GrpcServiceProcess
from tests.waiting import eventually

CREDITS = 4
SESSIONS_MAX = 3
FRAME_BYTES_MAX = 64 * 1024
LEASE_MS = 1500

_ANSWER_S_MAX = 60.0
_SESSION_S_MAX = 240.0  # a session may last as long as its test


class SenderProcess(GrpcServiceProcess):
    """A sender of `tests.samples.sender.application(name, ...)`."""

    def __init__(
        self,
        name: str,
        folder: Path,
        *,
        kafka: str,
        redis: str,
        sources: str = "",
        connections: str = "",
        **settings: str,
    ) -> None:
        """`sources`: keywords of the application, as they are written. `connections`: JSON."""
        environment = {
            "BETTONG_SENDER_CREDITS": str(CREDITS),
            "BETTONG_SENDER_SESSIONS_MAX": str(SESSIONS_MAX),
            "BETTONG_SENDER_LEASE_MS": str(LEASE_MS),
            **settings,
        }
        super().__init__(
            "sender",
            name,
            folder,
            environment,
            samples="tests.samples.sender",
            keywords=sources,
            connections=connections,
            kafka=kafka,
            redis=redis,
            partitions=PARTITIONS,
            frame_bytes_max=FRAME_BYTES_MAX,
        )

    def settle(self) -> None:
        """Lets its Redis count as one that has run for long."""
        with RedisStore(self._redis, self.name) as store, Redis.from_url(self._redis) as client:
            eventually(lambda: client.exists(store.key("epoch")), seconds=self.start_s_max)
            client.hset(store.key("epoch"), "since", "0")


class BareSession(Closing):
    """One session, by hand. The first answer is awaited by `welcome`."""

    def __init__(self, address: str, *requests: IngestRequest) -> None:
        self._requests: Queue[IngestRequest | None] = Queue()
        for request in requests:
            self._requests.put(request)
        self._channel = grpc.insecure_channel(address)
        self._call = IngestServiceStub(self._channel).Ingest(
            iter(self._requests.get, None), timeout=_SESSION_S_MAX
        )

    def welcome(self) -> Welcome:
        """The first answer."""
        return next(self._call).welcome

    def receipt(self) -> Receipt:
        """The next answer."""
        return next(self._call).receipt

    def send(self, *frames: IngestFrame) -> None:
        """Without a look at credits."""
        for frame in frames:
            self._requests.put(IngestRequest(frame=frame))

    def acknowledged(self, sequence: int) -> Receipt:
        """Reads receipts up to a sequence; their sum."""
        total = Receipt()
        while total.acknowledged < sequence:
            receipt = self.receipt()
            total.acknowledged = receipt.acknowledged
            total.credits += receipt.credits
            total.dead_letters += receipt.dead_letters
        return total

    def finish(self) -> None:
        """Sends nothing more, and reads to the end. Raises grpc.RpcError when that is no good one."""
        self._requests.put(None)
        for _ in self._call:
            pass

    def lease_left_ms(self) -> int:
        """What the metadata of a session that was refused say."""
        return int(dict(self._call.trailing_metadata())["bettong-lease-ms"])

    def status(self) -> tuple[grpc.StatusCode, str]:
        """Reads to the end, which must not be a good one."""
        try:
            for _ in self._call:
                pass
        except grpc.RpcError as error:
            return error.code(), error.details() or ""
        raise AssertionError("the session ended well")

    def close(self) -> None:
        """Goes away in the middle of whatever it is."""
        self._requests.put(None)
        self._call.cancel()
        self._channel.close()


def hello(
    source: str = "orders", stream: str = "feed", acknowledged: int = 0, client: str = "tester"
) -> IngestRequest:
    """The first message of a session."""
    return IngestRequest(hello=Hello(source=source, stream=stream, acknowledged=acknowledged, client=client))


@contextmanager
def opened(
    address: str, source: str = "orders", stream: str = "feed", client: str = "tester"
) -> Iterator[BareSession]:
    """A session that was welcomed."""
    with BareSession(address, hello(source, stream, client=client)) as session:
        session.welcome()
        yield session


def frames_in(kafka: str, topic: str) -> dict[int, list[Frame]]:
    """All frames of a topic up to its present end, by partition."""
    return {partition: list(map(decode, values)) for partition, values in values_in(kafka, topic).items()}


def values_in(kafka: str, topic: str) -> dict[int, list[bytes]]:
    """The values of all records of a topic up to its present end, by partition."""
    with LogAdmin(kafka) as admin:
        ends = admin.ends([topic])
    found: dict[int, list[bytes]] = {partition: [] for _, partition in ends}
    with LogReader(kafka, dict.fromkeys(ends, 0), frame_bytes_max=FRAME_BYTES_MAX) as log:

        def complete() -> bool:
            for record in log.poll(200, 10_000):
                found[record.partition].append(record.value)
            return all(len(found[partition]) >= end for (_, partition), end in ends.items())

        eventually(complete, seconds=_ANSWER_S_MAX, what=f"all of {topic}")
    return found


def taken(frames: list[Frame]) -> list[Frame]:
    """The frames that a consumer takes by the delivery rule."""
    table, found = DeliveryTable(), []
    for frame in frames:
        if frame.kind is FrameKind.OPEN:
            table.open(frame.origin, acknowledged=frame.previous, now_ns=frame.ingest_ns)
        elif frame.kind is FrameKind.DATA and (
            table.take(frame.origin, sequence=frame.sequence, previous=frame.previous, now_ns=frame.ingest_ns)
            is Verdict.TAKE
        ):
            found.append(frame)
    return found
