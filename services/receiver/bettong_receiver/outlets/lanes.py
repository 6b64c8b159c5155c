"""The lanes of an application: one for each sink with a destination."""

import threading
import time
import uuid
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from bettong.application.destinations import Postgres, TwoPhase
from bettong.application.plan import Plan
from bettong.application.streams import Sink
from bettong.connections import Options, options_of, read_connections
from bettong.edges.kafka_log import LogReader
from bettong.logs import Logger
from bettong.settings import ReceiverSettings
from bettong.topics import sink_topic
from bettong_receiver.formats import formats
from bettong_receiver.outlets.lane import Lane, Route
from bettong_receiver.outlets.postgres import PostgresOutlet, read_rows
from bettong_receiver.outlets.two_phase import TwoPhaseOutlet
from bettong_receiver.progress import SinkPartition
from bettong_receiver.status import Status


class Lanes:
    """All lanes of a receiver."""

    def __init__(
        self,
        routes: Sequence[Route[Any]],
        application: str,
        *,
        open_reader: Callable[[Mapping[tuple[str, int], int]], LogReader],
        status: Status,
        log: Logger,
    ) -> None:
        def told(sink: str, why: str | None) -> None:
            if why is None:
                status.has(f"sink {sink}")
            else:
                status.waits_for(f"sink {sink}", why)

        self._lanes: list[Lane[Any]] = [
            Lane(
                route,
                application,
                open_reader=open_reader,
                monotonic_s=time.monotonic,
                on_wait=partial(told, route.sink),
                log=log,
            )
            for route in routes
        ]

    def works(
        self, beginnings: Mapping[SinkPartition, int], stopping: threading.Event
    ) -> list[Callable[[], None]]:
        """What is to be run side by side, each in a thread of its own: see `Lane.run`."""
        return [
            partial(
                lane.run,
                {
                    partition: offset
                    for (sink, partition), offset in beginnings.items()
                    if sink == lane.route.sink
                },
                stopping,
            )
            for lane in self._lanes
        ]

    def offsets(self) -> dict[str, dict[tuple[str, int], int]]:
        """Of each sink, for each (topic, partition) the record that its outlet lacks."""
        return {lane.route.sink: lane.offsets() for lane in self._lanes}


def routes(plan: Plan, settings: ReceiverSettings) -> list[Route[Any]]:
    """Every sink that has a destination, and how it gets there. Raises SettingsError for a connection that lacks."""
    connections = read_connections(settings.connections)
    return [_route(plan, sink, settings, connections) for sink in plan.sinks if sink.to is not None]


def _route(
    plan: Plan, sink: Sink, settings: ReceiverSettings, connections: Mapping[str, Options]
) -> Route[Any]:
    name, application, to = sink.name, plan.application, sink.to
    user = f"sink {name!r}"

    def made(read: Callable[..., Any], make: Callable[[], Any]) -> Route[Any]:
        return Route(name, sink_topic(application, name), read, make)

    if isinstance(to, Postgres) and sink.parent.schema is not None:
        schema = sink.parent.schema
        url = options_of(connections, to.connection or name, user=user, needs="url")["url"]

        def postgres() -> PostgresOutlet:
            writer = f"{settings.instance}/{uuid.uuid4()}"
            return PostgresOutlet(url, to, schema, application=application, sink=name, writer=writer)

        postgres()  # says at once what is wrong with the address
        return made(read_rows(schema), postgres)
    if isinstance(to, TwoPhase):
        options = connections.get(to.connection or name, {})
        return made(formats(plan)[name].messages, lambda: TwoPhaseOutlet(name, lambda: to.open_sink(options)))
    raise AssertionError(f"{user}: {to!r} was checked when the application was described")
