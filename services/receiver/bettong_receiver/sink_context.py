"""What a connector of one sink is made of: the sink, its connection, what its frames hold."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from bettong.application.external.destination import Destination
from bettong.application.nodes.sink import Sink
from bettong.application.plan import Plan
from bettong.config.connections import Options, options_of
from bettong.config.receiver import ReceiverSettings
from bettong.edges.redis_store import RedisSink, RedisStore
from bettong.frames.frame import Frame
from bettong.schema.schema import Schema
from bettong.topics import sink_topic
from bettong_receiver.delivery.connector import Message, SinkConnector
from bettong_receiver.delivery.refusals import Refusals
from bettong_receiver.delivery.route import Route, SinkInput
from bettong_receiver.formats import formats

_FETCH_BYTES_MAX = 4 * 1024 * 1024


@dataclass(frozen=True, slots=True)
class SinkContext:
    """One sink of an application in one receiver: what the `route` of a connector's module gets."""

    plan: Plan
    settings: ReceiverSettings
    store: RedisStore
    connections: Mapping[str, Options]
    sink: Sink

    @property
    def name(self) -> str:
        """Of the sink."""
        return self.sink.name

    @property
    def messages(self) -> Callable[[Frame], Sequence[bytes]]:
        """Reads a frame of the sink as the encoder's bytes, else as JSON objects."""
        return formats(self.plan)[self.name].messages

    @property
    def lines(self) -> bool:
        """Whether these are JSON objects, which have no line end."""
        return self.sink.encoder is None

    @property
    def schema(self) -> Schema:
        """Of the sink's messages, for destinations that take no sink of several."""
        schema = self.sink.parent.schema
        if schema is None:
            raise AssertionError("was checked when the application was described")
        return schema

    @property
    def redis(self) -> RedisSink:
        """Where connectors keep positions whose destination takes none."""
        return RedisSink(self.store)

    def connection(self, to: Destination) -> str:
        """The name of a destination's connection."""
        return to.connection or self.name

    def options(self, to: Destination, *, needs: str) -> Options:
        """Of a destination's connection, which must have `needs`. Raises SettingsError."""
        return options_of(self.connections, self.connection(to), user=f"sink {self.name!r}", needs=needs)

    def options_if_any(self, to: Destination) -> Options:
        """The same where the connection needs nothing, not even to be there."""
        return self.connections.get(self.connection(to), {})

    def route(
        self, read: Callable[[Frame], Sequence[Message]], make: Callable[[], SinkConnector[Message]]
    ) -> Route[Message]:
        """The sink's way to one connector, whose messages are what `read` makes of a frame."""
        refusals = Refusals(
            self.plan.application,
            self.name,
            self.sink.on_error,
            self.messages,
            as_received=self.sink.encoder is not None,
            frame_bytes_max=self.settings.frame_bytes_max,
        )
        sink_input = SinkInput(self.name, sink_topic(self.plan.application, self.name), read, refusals)
        return Route(f"sink {self.name}", [sink_input], [make], _FETCH_BYTES_MAX)
