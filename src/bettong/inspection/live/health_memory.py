"""Keeps the result of a processor's last health check in a file, because each check is a process of its own."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from bettong.inspection.health import Seen
from bettong.topics import stage_topic


@dataclass(frozen=True, slots=True)
class HealthMemory:
    """The application's name, its stages by their topics, and the last result; None before the first check."""

    application: str
    topics: Mapping[str, str]
    seen: Seen | None


def remembered(file: Path, application: str) -> HealthMemory:
    """The file's content. Without one, loads the application from the file `application` for its names, and
    remembers them at once: a probe that is killed later need not load it again.
    """
    try:
        found = json.loads(file.read_text())
    except FileNotFoundError:
        # Most probes do not need the application, nor the time of its imports.
        from bettong.inspection.live.application import loaded_plan

        planned = loaded_plan(application)
        topics = {stage_topic(planned.application, stage.name): stage.name for stage in planned.stages}
        memory = HealthMemory(planned.application, topics, None)
        remember(file, memory)
        return memory
    return HealthMemory(
        found["application"], found["topics"], Seen(**found["seen"]) if found["seen"] else None
    )


def remember(file: Path, memory: HealthMemory) -> None:
    """Replaces the file as a whole: a probe that is killed leaves the old one."""
    seen = {"folded": memory.seen.folded, "since_s": memory.seen.since_s} if memory.seen else None
    fresh = file.with_suffix(f".{os.getpid()}")
    view = {"application": memory.application, "topics": dict(memory.topics), "seen": seen}
    fresh.write_text(json.dumps(view))
    fresh.replace(file)
