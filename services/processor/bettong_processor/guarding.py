"""Makes the crash guard of a process from its settings, for both schedules."""

from bettong.config.processor import ProcessorSettings
from bettong.edges.exclusion_log import ExclusionLog
from bettong.edges.snapshot_stores import prepare_folder
from bettong.logs import Logger
from bettong_processor.crashes.guard import Guard
from bettong_processor.crashes.marks import Marks
from bettong_processor.reporting import PartitionMetrics


def guarded(settings: ProcessorSettings, application: str, metrics: PartitionMetrics, log: Logger) -> Guard:
    """Its marks are in the deployment's folder of shared memory. Does not connect yet. Raises SettingsError."""
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
