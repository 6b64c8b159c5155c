"""A client with grpcio and the compiled protos alone, as someone of another house would write it. A program.

    python bare_client.py TARGET SOURCE STREAM < frames.json

Standard input: a list of frames, each a list of rows in hexadecimal. Standard output: what the sender answered.
`tests.e2e.bare_feed` runs it where Bettong itself cannot be imported.
"""

import json
import sys
from collections.abc import Iterator
from queue import Queue

import grpc

import bettong
from bettong.v1 import ingest_pb2, ingest_pb2_grpc

ANSWER_S_MAX = 60


def feed(
    target: str, source: str, stream: str, frames: list[list[bytes]]
) -> tuple[ingest_pb2.Welcome, ingest_pb2.Receipt]:
    """Sends each list of rows as one frame; returns the welcome and the last receipt."""
    requests: Queue[ingest_pb2.IngestRequest | None] = Queue()
    requests.put(ingest_pb2.IngestRequest(hello=ingest_pb2.Hello(source=source, stream=stream)))

    def outgoing() -> Iterator[ingest_pb2.IngestRequest]:
        while (request := requests.get()) is not None:
            yield request

    with grpc.insecure_channel(target, [("grpc.enable_http_proxy", 0)]) as channel:
        answers = ingest_pb2_grpc.IngestServiceStub(channel).Ingest(outgoing(), timeout=ANSWER_S_MAX)
        welcome = next(answers).welcome
        allowed, sent, receipt = welcome.credits, 0, ingest_pb2.Receipt()
        while receipt.acknowledged < len(frames):
            while allowed and sent < len(frames):
                frame = ingest_pb2.IngestFrame(sequence=sent + 1)
                frame.rows.messages.extend(frames[sent])
                requests.put(ingest_pb2.IngestRequest(frame=frame))
                allowed, sent = allowed - 1, sent + 1
            receipt = next(answers).receipt
            allowed += receipt.credits
        requests.put(None)
    return welcome, receipt


def main(target: str, source: str, stream: str) -> None:
    """See the module."""
    # The protos' package is a bare folder here: what runs when Bettong is imported did not run.
    if getattr(bettong, "__file__", None) is not None:
        sys.exit(f"Bettong itself was imported, from {bettong.__file__}")
    frames = [[bytes.fromhex(row) for row in rows] for rows in json.load(sys.stdin)]
    welcome, receipt = feed(target, source, stream, frames)
    answer = {
        "source": welcome.source.name,
        "takes_rows": welcome.source.takes_rows,
        "acknowledged": receipt.acknowledged,
    }
    json.dump(answer, sys.stdout)


if __name__ == "__main__":
    main(*sys.argv[1:])
