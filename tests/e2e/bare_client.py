"""A client with grpcio and the compiled protos alone, as someone of another house would write it."""

from collections.abc import Iterator
from queue import Queue

import grpc

from bettong.v1 import ingest_pb2, ingest_pb2_grpc


def feed(target: str, source: str, stream: str, frames: list[list[bytes]]) -> tuple[ingest_pb2.Welcome, int]:
    """Sends each list of rows as one frame; returns the welcome and the last sequence acknowledged."""
    requests: Queue[ingest_pb2.IngestRequest | None] = Queue()
    requests.put(ingest_pb2.IngestRequest(hello=ingest_pb2.Hello(source=source, stream=stream)))

    def outgoing() -> Iterator[ingest_pb2.IngestRequest]:
        while (request := requests.get()) is not None:
            yield request

    with grpc.insecure_channel(target) as channel:
        answers = ingest_pb2_grpc.IngestServiceStub(channel).Ingest(outgoing(), timeout=60)
        welcome = next(answers).welcome
        allowed, sent, acknowledged = welcome.credits, 0, 0
        while acknowledged < len(frames):
            while allowed and sent < len(frames):
                frame = ingest_pb2.IngestFrame(sequence=sent + 1)
                frame.rows.messages.extend(frames[sent])
                requests.put(ingest_pb2.IngestRequest(frame=frame))
                allowed, sent = allowed - 1, sent + 1
            receipt = next(answers).receipt
            acknowledged, allowed = max(acknowledged, receipt.acknowledged), allowed + receipt.credits
        requests.put(None)
    return welcome, acknowledged
