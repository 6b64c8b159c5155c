"""What identifies a partition, an origin and a frame: a type for each, so that none is taken for another.

A partition's number alone is an `int`: it means something only beside the stage, topic or sink that its holder knows.
Where both are passed they are one value.
"""

import re
from collections.abc import Mapping
from typing import NamedTuple, NewType, Self, TypeVar

# Who numbers frames: `<source>/<client's stream>`, or a stage's `<target>/<stage>/<partition>`.
Origin = NewType("Origin", str)


def stream_of(origin: Origin) -> str:
    """The name of the stream that an origin's messages belong to."""
    return origin.partition("/")[0]


def producer_of(origin: Origin) -> str:
    """Whose origin it is: that of a source's clients, or `stage_producer` of a stage's partitions."""
    return origin.rpartition("/")[0]


def partition_origin(producer: str, partition: int) -> Origin:
    """The origin of a stage's partition. `producer`: see `stage_producer`."""
    return Origin(f"{producer}/{partition}")


def stage_producer(target: str, stage: str) -> str:
    """The partitions of a stage, as those who write for a sink, a stream that `key_by` made, or dead letters."""
    return f"{target}/{stage}"


# The number of a frame among those of its origin: from 1 on, growing.
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
    """Of an application with so many partitions, what is known of those; its topics may have more of them."""
    return {each: value for each, value in of.items() if each.partition < partitions}


_VERSION = re.compile(r"([1-9]\d{0,17})-([0-9a-f]{64})")


class ReferenceVersion(NamedTuple):
    """A version of a reference table. `series`: see `ReferenceSource.series`; `fingerprint`: the SHA-256 of its bytes.

    `number`: from 1 on, in the order in which the versions of a series were loaded.
    """

    series: str
    number: int
    fingerprint: bytes

    @property
    def name(self) -> str:
        """As stores call it, among those of its series."""
        return f"{self.number}-{self.fingerprint.hex()}"

    def __str__(self) -> str:
        return f"version {self.number} of {self.series} ({self.fingerprint.hex()[:12]})"

    @classmethod
    def parse(cls, series: str, name: str) -> "ReferenceVersion | None":
        """The version of a name; None when that is no name of one."""
        found = _VERSION.fullmatch(name)
        return cls(series, int(found[1]), bytes.fromhex(found[2])) if found else None
