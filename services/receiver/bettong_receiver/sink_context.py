"""What the connector of one sink is built from: the sink, its connection, the schema of its frames."""

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
    """One sink of an application in one receiver: the argument of `route` in a connector's module."""

    plan: Plan
    settings: ReceiverSettings
    store: RedisStore
    connections: Mapping[str, Options]
    sink: Sink

    @property
    def name(self) -> str:
        """The sink's name."""
        return self.sink.name

    @property
    def messages(self) -> Callable[[Frame], Sequence[bytes]]:
        """A function that reads a frame of the sink as the encoder's bytes, else as JSON objects."""
        return formats(self.plan)[self.name].messages

    @property
    def lines(self) -> bool:
        """Whether `messages` are JSON objects, which contain no line end."""
        return self.sink.encoder is None

    @property
    def schema(self) -> Schema:
        """The schema of the sink's messages, for destinations that accept only sinks with one input stream."""
        schema = self.sink.parent.schema
        if schema is None:
            raise AssertionError("was checked when the application was described")
        return schema

    @property
    def redis(self) -> RedisSink:
        """Stores positions for connectors whose destination cannot."""
        return RedisSink(self.store)

    def connection(self, to: Destination) -> str:
        """The name of a destination's connection."""
        return to.connection or self.name

    def options(self, to: Destination, *, needs: str) -> Options:
        """The options of a destination's connection, which must include `needs`. Raises SettingsError."""
        return options_of(self.connections, self.connection(to), user=f"sink {self.name!r}", needs=needs)

    def options_if_any(self, to: Destination) -> Options:
        """As `options`, but nothing is required: empty without a connection."""
        return self.connections.get(self.connection(to), {})

    def route(
        self, read: Callable[[Frame], Sequence[Message]], make: Callable[[], SinkConnector[Message]]
    ) -> Route[Message]:
        """The route from the sink to one connector; `read` turns a frame into the connector's messages."""
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
