"""Market Spread by PyFlink, on a cluster in this process, Python in processes of its own.

Its thread mode, Python inside the JVM, finds no packages of a virtual environment.
"""

import os
import sys
from collections.abc import Iterator
from pathlib import Path

from pyflink.common import ByteArraySchema, Configuration, Types, WatermarkStrategy
from pyflink.datastream import (
    CheckpointingMode,
    KeyedProcessFunction,
    RuntimeContext,
    StreamExecutionEnvironment,
)
from pyflink.datastream.connectors.base import DeliveryGuarantee
from pyflink.datastream.connectors.kafka import (
    KafkaOffsetsInitializer,
    KafkaRecordSerializationSchema,
    KafkaSink,
    KafkaSource,
)
from pyflink.datastream.state import ValueStateDescriptor
from pyflink.java_gateway import get_gateway

from benchmarks.peers.market import NEW, step, symbol_of

KAFKA = os.environ["PEER_KAFKA"]
BYTES = Types.PRIMITIVE_ARRAY(Types.BYTE())
MARKET = Types.TUPLE([Types.DOUBLE(), Types.DOUBLE(), Types.BOOLEAN()])


class Check(KeyedProcessFunction):
    """Keeps a symbol's market as a value."""

    def open(self, runtime_context: RuntimeContext) -> None:
        """See KeyedProcessFunction."""
        self._market = runtime_context.get_state(ValueStateDescriptor("market", MARKET))

    def process_element(self, value: bytes, ctx: KeyedProcessFunction.Context) -> Iterator[bytes]:  # noqa: ARG002
        """One message of a symbol. State is written only where it has changed."""
        before = self._market.value() or NEW
        market, result = step(bytes(value), before)
        if market is not before:
            self._market.update(market)
        if result is not None:
            yield result


def main() -> None:
    """Runs until the process is ended."""
    jars = (Path(sys.prefix) / "jars").glob("*.jar")
    options = Configuration()
    options.set_string("pipeline.jars", ";".join(f"file://{jar}" for jar in jars))
    options.set_string("python.executable", sys.executable)
    options.set_string("python.client.executable", sys.executable)
    options.set_string("restart-strategy.type", "disable")  # a fault is to be seen, not repeated
    options.set_string("execution.checkpointing.dir", f"file://{os.environ['PEER_STATE']}/checkpoints")
    flow = StreamExecutionEnvironment.get_execution_environment(options)
    flow.set_parallelism(int(os.environ["PEER_PROCESSES"]))
    flow.enable_checkpointing(1000, CheckpointingMode.EXACTLY_ONCE)
    source = (
        KafkaSource.builder()
        .set_bootstrap_servers(KAFKA)
        .set_topics("messages")
        .set_group_id("market-spread")
        .set_starting_offsets(KafkaOffsetsInitializer.earliest())
        .set_value_only_deserializer(ByteArraySchema())
        .build()
    )
    record = KafkaRecordSerializationSchema.builder().set_topic("results")
    # PyFlink has no name for it: a subtask writes to one partition, so that the results of a symbol keep their order.
    partitioners = get_gateway().jvm.org.apache.flink.streaming.connectors.kafka.partitioner
    record._j_builder.setPartitioner(partitioners.FlinkFixedPartitioner())  # noqa: SLF001
    sink = (
        KafkaSink.builder()
        .set_bootstrap_servers(KAFKA)
        .set_record_serializer(record.set_value_serialization_schema(ByteArraySchema()).build())
        .set_delivery_guarantee(DeliveryGuarantee.EXACTLY_ONCE)
        .set_transactional_id_prefix("market-spread")
        .set_property("transaction.timeout.ms", "60000")
        .build()
    )
    messages = flow.from_source(source, WatermarkStrategy.no_watermarks(), "messages", BYTES)
    keyed = messages.key_by(lambda message: symbol_of(bytes(message)).decode(), Types.STRING())
    keyed.process(Check(), BYTES).sink_to(sink)
    flow.execute("market-spread")


if __name__ == "__main__":
    main()
