"""Starts Kafka and Redis of a stopped suite without its services: for commands that change its stored data."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from bettong.config.processor import ProcessorSettings
from bettong.config.reading import read
from bettong.edges.kernel_cache import kernel_cache
from bettong.edges.state_key import state_key
from bettong.errors import LocalError
from bettong.inspection.locations import Locations
from bettong.local.broker import KafkaBroker
from bettong.local.directories import Directories, is_suite
from bettong.local.locations import locations
from bettong.local.record import find
from bettong.local.redis_server import RedisServer
from bettong.local.secrets import Secrets


@contextmanager
def at_rest(
    application: str, name: str, directory: Path, *, kafka: str | None = None, redis: str | None = None
) -> Iterator[Locations]:
    """The locations of application `name`; Kafka and Redis of the suite in `directory` run until the context ends.

    With `kafka`, or if the folder is not a suite's, as `locations` finds them. Raises LocalError while the suite runs.
    """
    if kafka is not None or not is_suite(directory):
        yield locations(application, name, directory, kafka=kafka, redis=redis)
        return
    if redis is not None:
        raise LocalError(
            f"--redis alone: the suite in {directory} has a Redis of its own; give --kafka, too, for an application"
            " elsewhere"
        )
    if (record := find(directory)) is not None:
        raise LocalError(f"{record.name} runs in {directory}: end it with `bettong down`, and try again")
    directories = Directories(directory)
    with ExitStack() as stack:
        stack.callback(directories.remove)
        own = Secrets.of(directories.root)
        broker = KafkaBroker(directories.root / "kafka", password_file=own.kafka)
        server = RedisServer(directories.root / "redis", appendonly=True, password_file=own.redis)
        stack.enter_context(broker)
        stack.enter_context(server)
        settings = read(ProcessorSettings, {"application": application, "kafka": broker.bootstrap})
        yield Locations(
            kafka=broker.connection,
            redis=server.connection,
            sender=None,
            compiled=settings.compiled,
            kernel_cache=kernel_cache(settings.kernel_cache),
            frame_bytes_max=settings.frame_bytes_max,
            state_dir=directories.state,
            snapshots="redis",
            state_key=state_key(own.state_key),
        )
