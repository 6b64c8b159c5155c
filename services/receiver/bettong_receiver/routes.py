"""Which sinks go where: the one place that knows all kinds of connectors."""

import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from bettong.application.destinations import (
    AtLeastOnceTcp,
    AtLeastOnceWebhook,
    KafkaTopic,
    Postgres,
    TwoPhase,
)
from bettong.application.plan import Plan
from bettong.application.streams import Sink
from bettong.config.connections import Options, options_of, read_connections
from bettong.config.receiver import ReceiverSettings
from bettong.edges.external_kafka import ClientOptions, TransactionalTopic
from bettong.edges.redis_store import RedisSink, RedisStore
from bettong.frames.frame import Frame
from bettong.schema.schema import Schema
from bettong.topics import sink_topic
from bettong_receiver.connectors.files import FileConnector
from bettong_receiver.connectors.kafka_topic import KafkaConnector, Keyed, read_with_key, read_without_key
from bettong_receiver.connectors.postgres import PostgresConnector, Row, read_rows
from bettong_receiver.connectors.redis_results import RedisConnector
from bettong_receiver.connectors.tcp import AtLeastOnceTcpConnector, address_of
from bettong_receiver.connectors.two_phase import TwoPhaseConnector
from bettong_receiver.connectors.webhook import AtLeastOnceWebhookConnector, Endpoint
from bettong_receiver.delivery.connector import Message, SinkConnector
from bettong_receiver.delivery.refusals import Refusals
from bettong_receiver.delivery.route import Route, SinkInput
from bettong_receiver.formats import formats

# Of files and Redis, which have all sinks; and of one destination.
_ALL_FETCH_BYTES_MAX = 16 * 1024 * 1024
_FETCH_BYTES_MAX = 4 * 1024 * 1024


def routes(
    plan: Plan,
    settings: ReceiverSettings,
    store: RedisStore,
    *,
    on_redis_wait: Callable[[str | None], None],
) -> list[Route[Any]]:
    """Files (if wanted) and Redis with every sink, then one route for each sink that has a destination.

    `on_redis_wait` gets why deliveries to Redis wait, and None when they do no more. Raises SettingsError for a
    connection that lacks something.
    """
    connections = read_connections(settings.connections)
    return [
        _route_of_all(plan, settings, store, on_redis_wait),
        *(
            _Destination(plan, settings, store, connections, sink).route()
            for sink in plan.sinks
            if sink.to is not None
        ),
    ]


def _route_of_all(
    plan: Plan, settings: ReceiverSettings, store: RedisStore, on_redis_wait: Callable[[str | None], None]
) -> Route[bytes]:
    """To files and Redis, which get every sink: without them the receiver cannot go on."""
    sink_formats = formats(plan)

    def make_redis() -> RedisConnector:
        return RedisConnector(
            store,
            plan.application,
            results_max=settings.receiver_redis_results_max,
            monotonic_s=time.monotonic,
            on_wait=on_redis_wait,
        )

    folder = settings.receiver_dir
    if folder is None:
        newest = [SinkInput(each.sink, each.topic, each.messages) for each in sink_formats.values()]
        return Route("Redis", newest, [make_redis], _ALL_FETCH_BYTES_MAX, required=True)

    def make_files() -> FileConnector:
        return FileConnector(folder, plan.application, sink_formats, monotonic_s=time.monotonic)

    every = [SinkInput(each.sink, each.topic, each.messages_at_once) for each in sink_formats.values()]
    return Route("files and Redis", every, [make_files, make_redis], _ALL_FETCH_BYTES_MAX, required=True)


@dataclass(frozen=True, slots=True)
class _Destination:
    """Where one sink goes beside files and Redis."""

    plan: Plan
    settings: ReceiverSettings
    store: RedisStore
    connections: Mapping[str, Options]
    sink: Sink

    def route(self) -> Route[Any]:
        to = self.sink.to
        if isinstance(to, Postgres):
            return self._postgres(to)
        if isinstance(to, KafkaTopic):
            return self._kafka(to)
        if isinstance(to, TwoPhase):
            return self._two_phase(to)
        if isinstance(to, AtLeastOnceWebhook):
            return self._webhook(to)
        if isinstance(to, AtLeastOnceTcp):
            return self._tcp(to)
        raise AssertionError(f"{to!r} was checked when the application was described")

    def _postgres(self, to: Postgres) -> Route[Row]:
        url = self._options(to.connection, needs="url")["url"]
        schema = self._schema()

        def make() -> PostgresConnector:
            return PostgresConnector(
                url,
                to,
                schema,
                application=self.plan.application,
                sink=self.sink.name,
                writer=f"{self.settings.instance}/{uuid.uuid4()}",
            )

        make()  # says at once what is wrong with the address
        return self._route(read_rows(schema), make)

    def _kafka(self, to: KafkaTopic) -> Route[Keyed]:
        application, name = self.plan.application, self.sink.name
        options = ClientOptions(
            to.connection or name, self._options(to.connection, needs="bootstrap_servers")
        )
        read = (
            read_with_key(self._schema(), to.key) if to.key is not None else read_without_key(self._messages)
        )

        def make() -> KafkaConnector:
            topic = TransactionalTopic(
                options,
                topic=to.topic,
                positions=to.positions or f"bettong-positions.{application}.{name}",
                transactional_id=f"bettong.{application}.{name}",
            )
            return KafkaConnector(topic, application=application, sink=name)

        return self._route(read, make)

    def _two_phase(self, to: TwoPhase) -> Route[bytes]:
        name = self.sink.name
        options = self.connections.get(to.connection or name, {})
        return self._route(self._messages, lambda: TwoPhaseConnector(name, lambda: to.open_sink(options)))

    def _webhook(self, to: AtLeastOnceWebhook) -> Route[bytes]:
        name = self.sink.name
        endpoint = Endpoint.of(self._options(to.connection, needs="url"), sink=name)
        lines = self.sink.encoder is None

        def make() -> AtLeastOnceWebhookConnector:
            return AtLeastOnceWebhookConnector(endpoint, RedisSink(self.store), sink=name, lines=lines)

        return self._route(self._messages, make)

    def _tcp(self, to: AtLeastOnceTcp) -> Route[bytes]:
        name = self.sink.name
        address = address_of(self._options(to.connection, needs="address"), sink=name)
        lines = self.sink.encoder is None

        def make() -> AtLeastOnceTcpConnector:
            return AtLeastOnceTcpConnector(address, RedisSink(self.store), sink=name, lines=lines)

        return self._route(self._messages, make)

    def _route(
        self, read: Callable[[Frame], Sequence[Message]], make: Callable[[], SinkConnector[Message]]
    ) -> Route[Message]:
        refusals = Refusals(
            self.plan.application,
            self.sink.name,
            self.sink.on_error,
            self._messages,
            as_received=self.sink.encoder is not None,
            frame_bytes_max=self.settings.frame_bytes_max,
        )
        topic = sink_topic(self.plan.application, self.sink.name)
        sink_input = SinkInput(self.sink.name, topic, read, refusals)
        return Route(f"sink {self.sink.name}", [sink_input], [make], _FETCH_BYTES_MAX)

    @property
    def _messages(self) -> Callable[[Frame], Sequence[bytes]]:
        return formats(self.plan)[self.sink.name].messages

    def _options(self, connection: str | None, *, needs: str) -> Options:
        name = self.sink.name
        return options_of(self.connections, connection or name, user=f"sink {name!r}", needs=needs)

    def _schema(self) -> Schema:
        schema = self.sink.parent.schema
        if schema is None:
            raise AssertionError("was checked when the application was described")
        return schema
