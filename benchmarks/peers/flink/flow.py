"""What all programs share: a cluster in this process, Python in processes of its own, topics in and out.

Its thread mode, Python inside the JVM, finds no packages of a virtual environment.
"""

import os
import sys
from pathlib import Path

from pyflink.common import ByteArraySchema, Configuration, Types, WatermarkStrategy
from pyflink.datastream import CheckpointingMode, DataStream, StreamExecutionEnvironment
from pyflink.datastream.connectors.base import DeliveryGuarantee
from pyflink.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from pyflink.java_gateway import get_gateway

KAFKA = os.environ["PEER_KAFKA"]
BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())


def environment(checkpoint_ms: int = 1000) -> StreamExecutionEnvironment:
    """With a checkpoint each second, or at that distance."""
    jars = (Path(sys.prefix) / "jars").glob("*.jar")
    options = Configuration()
    options.set_string("pipeline.jars", ";".join(f"file://{jar}" for jar in jars))
    options.set_string("python.executable", sys.executable)
    options.set_string("python.client.executable", sys.executable)
    options.set_string("restart-strategy.type", "disable")  # a fault is to be seen, not repeated
    options.set_string("execution.checkpointing.dir", f"file://{os.environ['PEER_STATE']}/checkpoints")
    # By default Python keeps the states of 1,000 keys, and asks Java for those of all others.
    options.set_string("python.state.cache-size", "100000")
    flow = StreamExecutionEnvironment.get_execution_environment(options)
    flow.set_parallelism(int(os.environ["PEER_PROCESSES"]))
    flow.enable_checkpointing(checkpoint_ms, CheckpointingMode.EXACTLY_ONCE)
    return flow


def messages(
    flow: StreamExecutionEnvironment, times: WatermarkStrategy, topic: str = "messages"
) -> DataStream:
    """The bytes of a topic's records."""
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(KAFKA)
        .set_topics(topic)
        .set_group_id("race")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(ByteArraySchema())
        .build()
    )
    return flow.from_source(source, times, topic, BYTES)


def events(flow: StreamExecutionEnvironment, topic: str = "messages") -> DataStream:
    """The same in event time, which is the timestamp of a record; a partition's come in order."""
    return messages(flow, WatermarkStrategy.for_monotonous_timestamps(), topic)


def results() -> KafkaSink:
    """The topic of results; transactions."""
    record = KafkaRecordSerializationSchema.builder().set_topic("results")
    # PyFlink has no name for it: a subtask writes to one partition, so that the results of a key keep their order.
    partitioners = get_gateway().jvm.org.apache.flink.streaming.connectors.kafka.partitioner
    record._j_builder.setPartitioner(partitioners.FlinkFixedPartitioner())  # noqa: SLF001
    return (
        KafkaSink.builder()
        .set_bootstrap_servers(KAFKA)
        .set_record_serializer(record.set_value_serialization_schema(ByteArraySchema()).build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix("race")
        .set_property("transaction.timeout.ms", "60000")
        .build()
    )
