"""Two hundred thousand streams, each with a dead letter: what their subscriber and the receiver hold stays small."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import grpc
import psutil
import pytest

from bettong.frames.frame import Frame, encode
from bettong.frames.refused import Refused, pack
from bettong.identifiers import Origin, SequenceNumber
from bettong.local.broker import KafkaBroker
from bettong.local.redis_server import RedisServer
from bettong.v1 import subscribe_pb2 as pb
from bettong.v1.subscribe_pb2_grpc import SubscribeServiceStub
from bettong.worker.output.framing import OutputRecord
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import program
from tests.samples.result_frames import planned
from tests.servers.receiver_process import FRAME_BYTES_MAX, PARTITIONS, Feed, ReceiverProcess, Store
from tests.waiting import eventually

STREAMS = 200_000
# A dead letter of 100 bytes and a position of one origin have 160. With an origin for each stream it was 5.5 MB.
RESPONSE_BYTES_MAX = 300
MEBIBYTE = 1024 * 1024
# 13 measured; with the table of all origins it was 80.
GROWTH_BYTES_MAX = 40 * MEBIBYTE


def record_of(stream: int) -> bytes:
    """What a sender appends for a client whose only message cannot be read."""
    refused = pack(
        [Refused(0, "ValueError: no", b"%d" % stream, as_received=True)], frame_bytes_max=FRAME_BYTES_MAX
    )
    return encode(
        Frame(
            origin=Origin(f"notes-in/client-{stream}"),
            sequence=SequenceNumber(1),
            previous=SequenceNumber(0),
            ingest_ns=1 + stream,
            refused=refused,
        )
    )


def put_out(name: str) -> Iterator[list[OutputRecord]]:
    """The dead letters of each partition, as its worker puts them out."""
    (stage,) = planned(name).stages
    of = program(stage, compiled=False)
    for partition in range(PARTITIONS):
        worker = PartitionWorker(of, Assignment(name, partition, PARTITIONS, FRAME_BYTES_MAX))
        yield [
            record
            for offset, stream in enumerate(range(partition, STREAMS, PARTITIONS))
            for record in worker.fold(offset, record_of(stream))
        ]


@pytest.mark.timeout(300)
def test_positions_and_memory_do_not_grow_with_the_number_of_streams(
    kafka: KafkaBroker, redis_server: RedisServer, tmp_path: Path, unique_name: Callable[..., str]
) -> None:
    name = unique_name("many")
    with ExitStack() as stack:
        feed = Feed(name, kafka.bootstrap)
        stack.callback(feed.close)
        store = Store(redis_server.url, name)
        stack.callback(store.close)
        receiver = stack.enter_context(
            ReceiverProcess(name, tmp_path, kafka=kafka.bootstrap, redis=redis_server.url)
        )
        eventually(lambda: store.metrics().get("state") == "running", seconds=60)
        assert receiver.process is not None
        process = psutil.Process(receiver.process.pid)
        before = process.memory_info().rss
        for partition, records in enumerate(put_out(name)):
            feed.append("dead-letters", partition, (record.value for record in records))
        eventually(lambda: store.metrics().get("dead_letters") == str(STREAMS), seconds=120)
        assert store.metrics()["unreadable"] == "0"
        assert process.memory_info().rss - before < GROWTH_BYTES_MAX
        for path in (receiver.results / "dead-letters").glob("*.position"):
            assert path.stat().st_size < 1024
        stub = SubscribeServiceStub(stack.enter_context(grpc.insecure_channel(receiver.address)))
        request = pb.SubscribeRequest(sink="dead-letters", start=pb.START_EARLIEST)
        responses = stub.Subscribe(request, timeout=60)
        dead_letters, size = 0, 0
        while dead_letters < 32:
            response = next(responses)
            dead_letters += len(response.messages)
            size += response.ByteSize()
        responses.cancel()
        assert size < (PARTITIONS + 32) * RESPONSE_BYTES_MAX
        request.start = pb.START_LATEST
        opening = stub.Subscribe(request, timeout=60)
        assert all(len(next(opening).position.highest) == 1 for _ in range(PARTITIONS))
        opening.cancel()
