"""What talks to a running Bettong: feeding a source, and reading the results of a sink.

Knows nothing of Kafka and Redis.
"""

from bettong.client.sender import Sender, SourceInfo
from bettong.client.subscriber import Position, Result, Subscriber

__all__ = ["Position", "Result", "Sender", "SourceInfo", "Subscriber"]
