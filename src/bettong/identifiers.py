"""Identifiers of partitions, origins and frames: a type for each, so that they are not confused.

A partition's number alone is an `int`: it is meaningful only with a stage, topic or sink that the holder knows. Where
both are passed, they are one value.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple, NewType, Self, TypeVar

# Numbers its frames: `<source>/<client's stream>`, or a stage's `<target>/<stage>/<partition>`.
Origin = NewType("Origin", str)


def stream_of(origin: Origin) -> str:
    """The name of the stream that an origin's messages belong to."""
    return origin.partition("/")[0]


def producer_of(origin: Origin) -> str:
    """The producer of an origin: a source, for its clients, or `stage_producer` for a stage's partitions."""
    return origin.rpartition("/")[0]


def partition_origin(producer: str, partition: int) -> Origin:
    """The origin of a stage's partition. `producer`: see `stage_producer`."""
    return Origin(f"{producer}/{partition}")


def stage_producer(target: str, stage: str) -> str:
    """The producer that a stage's partitions are for `target`: a sink, a stream of `key_by`, or dead letters."""
    return f"{target}/{stage}"


# The number of a frame within its origin: from 1 on, increasing.
SequenceNumber = NewType("SequenceNumber", int)
NO_SEQUENCE = SequenceNumber(0)


class TopicPartition(NamedTuple):
    """A partition of a Kafka topic, written `topic/partition`."""

    topic: str
    partition: int

    def __str__(self) -> str:
        return f"{self.topic}/{self.partition}"


class PartitionId(NamedTuple):
    """A partition of a stage, written `stage/partition`. A stage's name may hold slashes."""

    stage: str
    partition: int

    def __str__(self) -> str:
        return f"{self.stage}/{self.partition}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """The inverse of `str`. Raises ValueError."""
        stage, _, partition = text.rpartition("/")
        return cls(stage, int(partition))


_Partition = TypeVar("_Partition", TopicPartition, PartitionId)
_Value = TypeVar("_Value")


def in_use(of: Mapping[_Partition, _Value], partitions: int) -> dict[_Partition, _Value]:
    """The entries of partitions below `partitions`, which the application uses; its topics may have more."""
    return {each: value for each, value in of.items() if each.partition < partitions}


_VERSION = re.compile(r"([1-9]\d{0,17})-([0-9a-f]{64})")


class ReferenceVersion(NamedTuple):
    """A version of a reference table. `series`: see `ReferenceSource.series`; `fingerprint`: the SHA-256 of its bytes.

    `number`: from 1 on, in the order in which a series' versions were loaded.
    """

    series: str
    number: int
    fingerprint: bytes

    @property
    def name(self) -> str:
        """Its name in stores, within its series."""
        return f"{self.number}-{self.fingerprint.hex()}"

    def __str__(self) -> str:
        return f"version {self.number} of {self.series} ({self.fingerprint.hex()[:12]})"

    @classmethod
    def parse(cls, series: str, name: str) -> "ReferenceVersion | None":
        """The inverse of `name`; None for an invalid one."""
        found = _VERSION.fullmatch(name)
        return cls(series, int(found[1]), bytes.fromhex(found[2])) if found else None
