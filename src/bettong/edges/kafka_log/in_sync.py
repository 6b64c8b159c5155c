"""How many replicas have a record that Kafka acknowledges.

With `acks=all` those that are in sync: the leader alone, where the others are behind or away, unless the topic's
setting `min.insync.replicas` asks for more.
"""

from collections.abc import Mapping

MIN_IN_SYNC = "min.insync.replicas"

# With fewer replicas than three, nothing could be appended while one broker restarts.
_REPLICAS_MIN = 3
_IN_SYNC_MIN = 2


def in_sync_settings(replication: int) -> dict[str, str]:
    """The settings of a new topic with so many replicas: of three or more, two acknowledge."""
    return {MIN_IN_SYNC: str(_IN_SYNC_MIN)} if replication >= _REPLICAS_MIN else {}


def rests_on_one(replication: int, settings: Mapping[str, str]) -> bool:
    """Whether a topic has replicas enough, and yet a record is acknowledged that one broker alone has."""
    return replication >= _REPLICAS_MIN and int(settings.get(MIN_IN_SYNC, _IN_SYNC_MIN)) < _IN_SYNC_MIN
