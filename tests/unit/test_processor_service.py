"""How the processor ends, without Java, Kafka and Redis."""

from pathlib import Path
from typing import Any, NoReturn

import pytest
import structlog
from structlog.testing import capture_logs

from bettong.config.processor import ProcessorSettings
from bettong.config.reading import read
from bettong.edges.snapshot_stores import local_states
from bettong.errors import SettingsError
from bettong.identifiers import PartitionId
from bettong.snapshots.chain import Increment
from bettong_processor import service
from tests.samples.worker import meters


class NobodysLease:
    """The lead, which nobody has and nobody gets."""

    def hold(self, process: str, *, take: bool) -> str:
        del process, take
        return ""

    def release(self, process: str) -> None:
        """Does nothing."""


class BrokenJava:
    """Comes up, and fails at its end."""

    def context(self, application: str) -> str:
        return application

    def stop(self) -> NoReturn:
        raise OSError("Java")


def test_a_java_that_fails_at_its_end_leaves_no_states_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(_: ProcessorSettings) -> NoReturn:
        raise SettingsError("not compiled")

    monkeypatch.setattr(service, "programs", refused)
    monkeypatch.setattr(service, "RedisLead", lambda _store, **_: NobodysLease())
    settings = read(ProcessorSettings, {"application": "app.py", "state_dir": tmp_path})
    planned = meters()
    states = local_states(settings.state_folder(planned.application), "123456789abc")
    states.save(PartitionId("tally", 0), Increment(12, 0, 12), b"state")
    unused: Any = None
    java: Any = BrokenJava()
    with capture_logs() as lines, pytest.raises(OSError, match="Java"):
        service._run(settings, java, planned, unused, unused, unused, structlog.get_logger())
    assert not states.increments(PartitionId("tally", 0))
    assert lines[-1]["event"] == "stopped"
