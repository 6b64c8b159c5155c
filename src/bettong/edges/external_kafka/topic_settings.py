"""Settings and identity of a user's topic."""

from collections.abc import Mapping
from uuid import UUID

from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError, NoError, for_code

_NO_ID = UUID(int=0)
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


def topic_identity(admin: KafkaAdminClient, topic: str) -> str:
    """The id that Kafka gives a topic, another one once it was deleted and made anew; "" of brokers before 2.8.

    Raises KafkaError.
    """
    (found,) = admin.describe_topics([topic])
    if (error := for_code(found["error_code"])) is not NoError:
        raise error(topic)
    identity = found.get("topic_id")
    return str(identity) if identity not in (None, _NO_ID) else ""


def deleting(settings: Mapping[str, str]) -> str:
    """The settings by which Kafka deletes records although they are the newest of their key; "" for none. Pure."""
    if "delete" not in settings.get(_POLICY, ""):
        return ""
    limits = [name for name in _RETENTION if settings.get(name, "-1") != "-1"]
    return ", ".join(f"{name}={settings[name]}" for name in (_POLICY, *limits)) if limits else ""
