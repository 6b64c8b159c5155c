"""The external systems that this sender reads, each with its source and reader."""

from collections.abc import Callable, Mapping
from importlib import import_module

from bettong.application.external.transport import Transport
from bettong.application.nodes.source import Source
from bettong.application.plan import Plan
from bettong.config.connections import Options, read_connections
from bettong.config.sender import SenderSettings
from bettong.edges.boundary_log import boundary_log
from bettong.edges.external_reader import ExternalReader
from bettong.errors import SettingsError
from bettong.frames.times import TIME_BYTES
from bettong_sender.batcher import records_that_fit
from bettong_sender.source_feed import ExternalSource


def external_sources(plan: Plan, settings: SenderSettings) -> list[ExternalSource]:
    """The sources that this sender reads.

    Raises SettingsError for an incomplete connection.
    """
    external = {source.name: source for source in plan.sources if source.from_ is not None}
    chosen = {"all": set(external), "none": set[str]()}.get(settings.sender_topics)
    if chosen is None:
        chosen = set(settings.sender_topics.split(","))
        if strange := sorted(chosen - external.keys()):
            raise SettingsError(
                f"BETTONG_SENDER_TOPICS: {', '.join(strange)}: expected all, none, or sources with from_=:"
                f" {', '.join(sorted(external)) or 'there are none'}"
            )
    connections = read_connections(settings.connections)
    return [
        _external_source(plan, source, source.from_, settings, connections)
        for name, source in external.items()
        if name in chosen and source.from_ is not None
    ]


def _external_source(
    plan: Plan,
    source: Source,
    transport: Transport,
    settings: SenderSettings,
    connections: Mapping[str, Options],
) -> ExternalSource:
    # A message's watermark counts as one more column.
    watermarks = (TIME_BYTES,) if plan.stage_of(source.name).judges_lateness else ()
    return ExternalSource(
        source.name,
        transport,
        open_boundary_log=lambda: boundary_log(
            settings.kafka_connection, plan.application, source.name, replication=settings.replication
        ),
        open_reader=_opener(transport, source.name, connections),
        frame_bytes_max=settings.frame_bytes_max,
        batch_records_max=records_that_fit((*source.schema.widths, *watermarks), settings.frame_bytes_max),
    )


def _opener(
    transport: Transport, source: str, connections: Mapping[str, Options]
) -> Callable[[], ExternalReader]:
    """Imports the reader of the transport's kind only: kinds that the application does not use are not loaded."""
    reader = import_module(f"bettong_sender.readers.{transport.kind}")
    opener: Callable[[], ExternalReader] = reader.opener(transport, source=source, connections=connections)
    return opener
