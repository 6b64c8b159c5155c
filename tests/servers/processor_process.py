"""A processor as a process of its own, for tests against a real broker, Redis and Spark."""

from pathlib import Path

from bettong import metrics
from bettong.application.plan import plan
from bettong.edges.application_file import load
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame, encode
from bettong.identifiers import Origin, SequenceNumber
from bettong.local.services import spark_folders
from tests.servers.service_process import ServiceProcess

PARTITIONS = 2
_START_S_MAX = 120.0  # ten seconds alone; the machine of a test run is busy


class ProcessorProcess(ServiceProcess):
    """`bettong processor` for the application that `source`, Python text, describes under `name`."""

    def __init__(
        self, name: str, source: str, folder: Path, *, kafka: str, redis: str, **settings: str
    ) -> None:
        self._source = source
        environment = {
            "BETTONG_SPARK_MASTER": "local[1]",
            "BETTONG_CHECKPOINT": str(folder / "checkpoint"),
            "BETTONG_STATE_DIR": str(folder / "state"),
            "BETTONG_KERNEL_CACHE": str(folder / "kernels"),
            **spark_folders(folder),
            **settings,
        }
        super().__init__(
            "processor",
            name,
            folder,
            ("-m", "bettong", "processor"),
            environment,
            kafka=kafka,
            redis=redis,
            partitions=PARTITIONS,
            answers=lambda: self.metrics().get(metrics.STATE.name) == "running",
            start_s_max=_START_S_MAX,
        )

    def application(self) -> str:
        """See ServiceProcess."""
        return self._source

    def last_line(self) -> str:
        """What it ended with."""
        return self.logged().strip().splitlines()[-1]

    def status(self) -> int:
        """Waits for its end, and gives its exit code."""
        assert self.process is not None
        ending = self.process.wait(self.start_s_max)
        assert ending is not None, "it runs on"
        return ending.status


def payments_frame(processor: ProcessorProcess, sequence: int) -> bytes:
    """A frame of one payment, as a sender appends it."""
    schema = plan(load(processor.command.environment["BETTONG_APPLICATION"])).sources[0].schema
    return encode(
        Frame(
            origin=Origin("payments/test"),
            sequence=SequenceNumber(sequence),
            previous=SequenceNumber(sequence - 1),
            count=1,
            schema=schema.fingerprint,
            ingest_ns=sequence,
            columns=Columns.of_messages(schema, [schema.message("ann", 1.0)]).payload(),
        )
    )
