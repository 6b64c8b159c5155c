"""The guard of a process, by its settings: what both schedules fold with."""

from bettong.config.processor import ProcessorSettings
from bettong.edges.exclusion_log import ExclusionLog
from bettong.edges.snapshot_stores import prepare_folder
from bettong.logs import Logger
from bettong_processor.crashes.guard import Guard
from bettong_processor.crashes.marks import Marks
from bettong_processor.reporting import PartitionMetrics


def guarded(settings: ProcessorSettings, application: str, metrics: PartitionMetrics, log: Logger) -> Guard:
    """Marks lie beside the states that workers of a machine share. Connects to nothing yet. Raises SettingsError."""
    folder = settings.state_folder(application)
    prepare_folder(folder)
    exclusions = ExclusionLog(
        settings.kafka_connection, application, frame_bytes_max=settings.frame_bytes_max
    )
    return Guard(
        Marks(folder, settings.partitions),
        exclusions,
        metrics,
        log,
        limit_ms=settings.message_ms_max,
        measures=settings.measures,
    )
