"""Settings of a user's topic."""

from collections.abc import Mapping

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

_POLICY = "cleanup.policy"
_RETENTION = ("retention.ms", "retention.bytes")


def topic_settings(admin: KafkaAdminClient, topic: str) -> dict[str, str]:
    """The settings of a topic by name; empty if unknown (without the permission DescribeConfigs)."""
    resource = ConfigResource(ConfigResourceType.TOPIC, topic)
    try:
        found = admin.describe_configs([resource], config_filter="all")["topic"][topic]
        return {name: str(each["value"]) for name, each in found.items()}
    except (KafkaError, KeyError):
        return {}


def deleting(settings: Mapping[str, str]) -> str:
    """The settings by which Kafka deletes records although they are the newest of their key; "" for none. Pure."""
    if "delete" not in settings.get(_POLICY, ""):
        return ""
    limits = [name for name in _RETENTION if settings.get(name, "-1") != "-1"]
    return ", ".join(f"{name}={settings[name]}" for name in (_POLICY, *limits)) if limits else ""
