"""Which records a topic of the user's takes, by their size: known before they are sent.

Kafka refuses a whole batch, at the cost of its transaction, and does not say which record it was for.
"""

from collections.abc import Sequence
from typing import Any

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError
from kafka.record import MemoryRecordsBuilder

# Of a record alone in its batch, beside key and value: at most 61 + 36 bytes (KIP-98).
_OVERHEAD_BYTES = 128
_LIMIT = "max.message.bytes"
_MAGIC = 2


def batch_limit(admin: KafkaAdminClient, topic: str) -> int | None:
    """How large a batch the topic takes; None when Kafka does not say (the right DescribeConfigs is missing)."""
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    try:
        answer = admin.describe_configs([resource], config_filter="all")
        return int(answer["topic"][topic][_LIMIT]["value"])
    except (KafkaError, KeyError):
        return None


def too_large(producer: Any, records: Sequence[tuple[bytes | None, bytes]], limit: int | None) -> list[int]:
    """The indexes of the (key, value) that the producer cannot send, or a topic with that limit would not take."""
    config = producer.config
    request_max = config["max_request_size"]
    found = []
    for index, (key, value) in enumerate(records):
        size_max = len(key or b"") + len(value) + _OVERHEAD_BYTES
        if size_max > request_max or (
            limit is not None and size_max > limit and _batch_size(key, value, config) > limit
        ):
            found.append(index)
    return found


def _batch_size(key: bytes | None, value: bytes, config: dict[str, Any]) -> int:
    """Of the batch that holds this record alone, compressed as it would be."""
    builder = MemoryRecordsBuilder(_MAGIC, config.get("compression_attrs", 0), config["batch_size"])
    builder.append(None, key, value)
    builder.close()
    return int(builder.size_in_bytes())
