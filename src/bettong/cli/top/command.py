"""`bettong top`: what runs, as it goes, in the terminal."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from bettong.cli.directory import DIRECTORY, HERE
from bettong.cli.status import APPLICATION, KAFKA, REDIS, elsewhere

if TYPE_CHECKING:
    from bettong.inspection.live.watch import DeploymentWatch


def top(
    *,
    directory: Annotated[Path, DIRECTORY] = HERE,
    redis: Annotated[str | None, REDIS] = None,
    application: Annotated[str | None, APPLICATION] = None,
    kafka: Annotated[str | None, KAFKA] = None,
) -> None:
    """Watch services, stages, partitions, dead letters and events, once a second. Keyboard only; ? shows the keys."""
    from bettong.cli.top.live import LiveTop
    from bettong.errors import SettingsError

    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise SettingsError("bettong top needs a terminal: `bettong status --json` is for scripts")
    LiveTop(watch(directory, redis, application, kafka)).run()


def watch(directory: Path, redis: str | None, application: str | None, kafka: str | None) -> DeploymentWatch:
    """Of the deployment that flags name, or of the suite in a folder. Raises SettingsError, LocalError, StoreError."""
    from bettong.config.reading import read
    from bettong.config.service import ServiceSettings
    from bettong.errors import LocalError
    from bettong.inspection.live.watch import LiveWatch
    from bettong.local.inspecting import SuiteWatch
    from bettong.local.record import find

    name = elsewhere(redis, application)
    flags = {"application": name or "", "redis": redis, "kafka": kafka}
    settings = read(ServiceSettings, {flag: value for flag, value in flags.items() if value is not None})
    if name is not None:
        where = settings.kafka_connection if "kafka" in settings.model_fields_set else None
        return LiveWatch(name, settings.redis_connection, where, frame_bytes_max=settings.frame_bytes_max)
    if find(directory) is None:
        raise LocalError(
            f"nothing runs in {directory} (bettong up APP.py; elsewhere: --redis URL --application NAME)"
        )
    return SuiteWatch(directory, frame_bytes_max=settings.frame_bytes_max)
