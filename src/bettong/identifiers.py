"""What identifies a partition, an origin and a frame: a type for each, so that none is taken for another."""

from typing import NamedTuple, NewType, Self

# Who numbers frames: `<source>/<client's stream>`, or a stage's `<target>/<stage>/<partition>`.
Origin = NewType("Origin", str)

# The number of a frame among those of its origin: from 1 on, growing. 0 stands for none.
Sequence = NewType("Sequence", int)


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
