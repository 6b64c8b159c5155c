"""Clients of a running Bettong: `Sender` feeds a source, `Subscriber` reads the results of a sink.

They call the sender and the receiver; nothing here may use Kafka or Redis.
"""

from bettong.client.credentials import Credentials
from bettong.client.sender import Sender, SourceInfo
from bettong.client.subscriber import Position, Result, Subscriber

__all__ = ["Credentials", "Position", "Result", "Sender", "SourceInfo", "Subscriber"]
