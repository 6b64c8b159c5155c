"""What all programs share: the application and its topics. State lies in RocksDB, with changelog topics."""

import os

from quixstreams import Application
from quixstreams.dataframe import StreamingDataFrame
from quixstreams.models import Topic

from benchmarks.peers.events import EVENT


def application(name: str, *, commit_s: float = 1.0) -> Application:
    """It commits each second, or at that distance."""
    return Application(
        broker_address=os.environ.get("PEER_KAFKA", "localhost:9092"),
        consumer_group=name,
        auto_offset_reset="earliest",
        processing_guarantee="exactly-once",
        commit_interval=commit_s,
        state_dir=os.environ.get("PEER_STATE", "state"),
        loglevel="WARNING",
    )


def messages(app: Application, name: str = "messages") -> StreamingDataFrame:
    """The messages of a topic."""
    return app.dataframe(app.topic(name, key_deserializer="bytes", value_deserializer="bytes"))


def values(app: Application, name: str = "messages") -> StreamingDataFrame:
    """The value of each message by event time; Quix Streams goes by the record's key and timestamp."""
    return messages(app, name).apply(lambda message: EVENT.unpack(message)[2])


def results(app: Application) -> Topic:
    """The topic of results."""
    return app.topic("results", key_serializer="bytes", value_serializer="bytes")
