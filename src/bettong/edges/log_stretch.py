"""Reads given ranges of a log, all of whose records must exist."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping

from bettong.config.connection_settings import KafkaConnection
from bettong.edges.kafka_log import LogReader, Record
from bettong.errors import LogUnavailableError
from bettong.identifiers import TopicPartition

Offsets = Mapping[TopicPartition, int]

_RECORDS_MAX = 500
_POLL_MS = 500
# Longer than a restart of the broker (4 s), shorter than people's patience.
_SILENCE_S_MAX = 30.0


def stretch(
    kafka: str | KafkaConnection, firsts: Offsets, untils: Offsets, *, frame_bytes_max: int
) -> Iterator[Record]:
    """The records of each (topic, partition) from its offset in `firsts` to the one before that in `untils`, in order.

    Memory is bounded by a few fetches. Raises LogTruncatedError when records are missing, LogUnavailableError when the
    broker returns none for 30 s.
    """
    starts = {partition: first for partition, first in firsts.items() if first < untils[partition]}
    if not starts:
        return
    left = sum(untils[partition] - first for partition, first in starts.items())
    with LogReader(kafka, starts, frame_bytes_max=frame_bytes_max) as reader:
        heard_s = time.monotonic()
        while left:
            for record in reader.poll(_POLL_MS, _RECORDS_MAX):
                heard_s = time.monotonic()
                if record.offset < untils[TopicPartition(record.topic, record.partition)]:
                    left -= 1
                    yield record
            if time.monotonic() - heard_s > _SILENCE_S_MAX:
                raise LogUnavailableError(
                    f"Kafka at {KafkaConnection.of(kafka).bootstrap} returned no record for {_SILENCE_S_MAX:.0f} s,"
                    f" {left} are left to read; is it running?"
                )
