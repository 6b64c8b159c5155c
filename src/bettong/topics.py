"""Every Kafka topic of Bettong, and nothing else about Kafka.

| topic                                     | records                               | written by        | read by   |
| ----------------------------------------- | ------------------------------------- | ----------------- | --------- |
| `{application}.stage.{stage}`             | frames that enter a stage             | sender, processor | processor |
| `{application}.sink.{sink}`               | frames of results                     | processor         | receiver  |
| `{application}.batch-boundaries.{source}` | where frames of an external topic end | sender            | sender    |
| `{application}.dead-letters`              | frames whose rows are `DeadLetter`s   | processor,        | receiver  |
|                                           |                                       | receiver          |           |
| `{application}.exclusions`                | messages that kill a worker           | processor         | processor |
| `{application}.partitioning`              | how many partitions there are         | `repartition`     | all       |

A sender writes to `dead-letters`, too: a mark without messages for each dead letter that is sent again.

All topics but the last one and those of batch boundaries have the same number of partitions, so that a partition of
results comes from one partition of a stage and keeps its order. A topic of batch boundaries has one partition, is
compacted, and is created by the sender that reads the external topic. The topic for partitioning has one partition, and
is created by the first repartitioning, after which some partitions of the other topics may be unused.
"""

from collections.abc import Iterable

DEAD_LETTERS = "dead-letters"


def stage_topic(application: str, stage: str) -> str:
    """The input topic of a stage."""
    return f"{application}.stage.{stage}"


def sink_topic(application: str, sink: str) -> str:
    """The topic of a sink's results; of the dead letters for the sink named `dead-letters`."""
    return dead_letter_topic(application) if sink == DEAD_LETTERS else f"{application}.sink.{sink}"


def boundaries_topic(application: str, source: str) -> str:
    """The topic in which a sender stores where it ends the frames of an external topic."""
    return f"{application}.batch-boundaries.{source}"


def dead_letter_topic(application: str) -> str:
    """The topic of messages that could not be processed."""
    return f"{application}.{DEAD_LETTERS}"


def exclusions_topic(application: str) -> str:
    """The topic of exclusions: messages of which workers died."""
    return f"{application}.exclusions"


def partitioning_topic(application: str) -> str:
    """The topic of an application's numbers of partitions, once repartitioned."""
    return f"{application}.partitioning"


def is_stage_topic(application: str, topic: str) -> bool:
    """Whether it is the input topic of a stage."""
    return topic.startswith(stage_topic(application, ""))


def stage_of_topic(application: str, topic: str) -> str:
    """The stage whose input topic it is: the inverse of `stage_topic`."""
    return topic.removeprefix(f"{application}.stage.")


def all_topics(application: str, *, stages: Iterable[str], sinks: Iterable[str]) -> tuple[str, ...]:
    """Every topic that an application needs, except those of batch boundaries and for partitioning."""
    return (
        *(stage_topic(application, stage) for stage in stages),
        *(sink_topic(application, sink) for sink in sinks),
        dead_letter_topic(application),
        exclusions_topic(application),
    )
