"""What talks to a running Bettong: feeding a source, and reading the results of a sink.

Knows nothing of Kafka and Redis.
"""

from bettong.client.credentials import Credentials
from bettong.client.sender import Sender, SourceInfo
from bettong.client.subscriber import Position, Result, Subscriber

__all__ = ["Credentials", "Position", "Result", "Sender", "SourceInfo", "Subscriber"]
