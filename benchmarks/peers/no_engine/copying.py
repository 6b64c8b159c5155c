"""Copies bids from topic to topic by Kafka's client alone: what every engine in Python takes at least.

It decodes nothing, keeps nothing, and stores no position. The argument is the number of this process, by which
processes share the partitions.
"""

import os
import sys

from confluent_kafka import Consumer, Producer, TopicPartition

from benchmarks.peers.load import OUTPUT
from benchmarks.peers.race import checked_value

_TOPIC = "bids"
_BATCH = 10_000
_POLL_S = 0.05
_CONSUMER = {"group.id": "copying", "fetch.queue.backoff.ms": 5}
_PRODUCER = {
    "acks": "all",
    "enable.idempotence": True,
    "linger.ms": 5,
    "queue.buffering.max.messages": 0,
    "queue.buffering.max.kbytes": 2**31 - 1,
    "delivery.report.only.error": True,
}


def main() -> None:
    """Copies until it is killed."""
    broker = {"bootstrap.servers": os.environ["PEER_KAFKA"]}
    partitions, processes = int(os.environ["PEER_PARTITIONS"]), int(os.environ["PEER_PROCESSES"])
    consumer, producer = Consumer(_CONSUMER | broker), Producer(_PRODUCER | broker)
    consumer.assign(
        [TopicPartition(_TOPIC, each, 0) for each in range(int(sys.argv[1]), partitions, processes)]
    )
    while True:
        for record in consumer.consume(_BATCH, _POLL_S):
            producer.produce(OUTPUT, checked_value(record), record.key())
        producer.poll(0)


if __name__ == "__main__":
    main()
