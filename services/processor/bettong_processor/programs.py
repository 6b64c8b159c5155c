"""The application's stages, loaded and compiled once a process (and inherited by Spark's forked workers)."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bettong.application.loading import load
from bettong.application.plan import Plan, plan
from bettong.worker.kernel_cache import folder_of
from bettong.worker.stage_program import StageProgram, program


@dataclass(frozen=True, slots=True)
class Programs:
    """A plan, and its stages ready to run, by name."""

    plan: Plan
    stages: dict[str, StageProgram]


@lru_cache(maxsize=4)
def programs(application: str, *, compiled: bool, cache: Path) -> Programs:
    """Loads an application file and compiles its stages. Takes seconds the first time in a process."""
    planned = plan(load(application))
    folder = folder_of(cache)
    return Programs(
        planned, {stage.name: program(stage, compiled=compiled, cache=folder) for stage in planned.stages}
    )
