"""Which sinks go where: files (if configured) and Redis get every sink; a destination gets the sink that names it."""

import time
from collections.abc import Callable
from importlib import import_module
from typing import Any

from bettong.application.external.destination import Destination
from bettong.application.plan import Plan
from bettong.config.connections import read_connections
from bettong.config.receiver import ReceiverSettings
from bettong.edges.redis_store import RedisStore
from bettong_receiver.background import Background
from bettong_receiver.connectors.files import FileConnector
from bettong_receiver.connectors.redis_results import RedisConnector
from bettong_receiver.delivery.route import Route, SinkInput
from bettong_receiver.formats import formats
from bettong_receiver.sink_context import SinkContext

_FETCH_BYTES_MAX = 16 * 1024 * 1024


def routes(
    plan: Plan,
    settings: ReceiverSettings,
    store: RedisStore,
    *,
    on_redis_wait: Callable[[str | None], None],
) -> list[Route[Any]]:
    """One route with every sink to files (if configured) and Redis, then one for each sink that has a destination.

    `on_redis_wait` gets the reason why deliveries to Redis wait, and None when they proceed. Raises SettingsError for
    an incomplete connection.
    """
    connections = read_connections(settings.connections)
    return [
        _route_of_all(plan, settings, store, on_redis_wait),
        *(
            _route_to(sink.to, SinkContext(plan, settings, store, connections, sink))
            for sink in plan.sinks
            if sink.to is not None
        ),
    ]


def _route_to(to: Destination, context: SinkContext) -> Route[Any]:
    """Builds a route with the module of the destination's kind, which is imported only when a sink needs it."""
    connector = import_module(f"bettong_receiver.connectors.{to.kind}")
    route: Route[Any] = connector.route(context, to)
    return route


def _route_of_all(
    plan: Plan, settings: ReceiverSettings, store: RedisStore, on_redis_wait: Callable[[str | None], None]
) -> Route[bytes]:
    """The required route: every sink to files and Redis."""
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
        return Route("Redis", newest, [make_redis], _FETCH_BYTES_MAX, required=True)

    syncing = Background("file-sync")

    def make_files() -> FileConnector:
        return FileConnector(
            folder, plan.application, sink_formats, background=syncing, monotonic_s=time.monotonic
        )

    every = [SinkInput(each.sink, each.topic, each.messages_at_once) for each in sink_formats.values()]
    return Route("files and Redis", every, [make_files, make_redis], _FETCH_BYTES_MAX, required=True)
