"""`bettong top`: shows a running application in the terminal, live."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from bettong.cli.directory import DIRECTORY, HERE, nothing_runs
from bettong.cli.status import APPLICATION, KAFKA, REDIS, elsewhere

if TYPE_CHECKING:
    from bettong.config.service import ServiceSettings
    from bettong.inspection.live.watch import DeploymentWatch


def top(
    *,
    directory: Annotated[Path, DIRECTORY] = HERE,
    redis: Annotated[str | None, REDIS] = None,
    application: Annotated[str | None, APPLICATION] = None,
    kafka: Annotated[str | None, KAFKA] = None,
) -> None:
    """Watch services, stages, partitions, dead letters and events, once a second. Keyboard only; ? shows the keys."""
    from bettong.errors import SettingsError

    if not _is_terminal():
        raise SettingsError("bettong top needs a terminal: `bettong status --json` is for scripts")
    watch = watched_deployment(directory, redis, application, kafka)
    from bettong.cli.top.live import LiveTopApp

    LiveTopApp(watch).run()


def _is_terminal() -> bool:
    return sys.stdin.isatty() and sys.stdout.isatty()


def watched_deployment(
    directory: Path, redis: str | None, application: str | None, kafka: str | None
) -> DeploymentWatch:
    """The deployment that flags name, or the suite in a folder. Raises SettingsError, LocalError, StoreError."""
    from bettong.errors import LocalError
    from bettong.inspection.live.watch import LiveWatch
    from bettong.local.inspecting import SuiteWatch
    from bettong.local.record import find

    name = elsewhere(redis, application)
    if name is None:
        record = find(directory)
        if record is None:
            raise LocalError(nothing_runs(directory))
        return SuiteWatch(directory, frame_bytes_max=_settings(record.name, {}).frame_bytes_max)
    settings = _settings(name, {"redis": redis, "kafka": kafka})
    where = settings.kafka_connection if "kafka" in settings.model_fields_set else None
    return LiveWatch(name, settings.redis_connection, where, frame_bytes_max=settings.frame_bytes_max)


def _settings(application: str, flags: dict[str, str | None]) -> ServiceSettings:
    from bettong.config.reading import read
    from bettong.config.service import ServiceSettings

    known = {flag: value for flag, value in flags.items() if value is not None}
    return read(ServiceSettings, {"application": application, **known})
