"""Loads and compiles the application's stages, once a process; Spark's forked workers inherit them."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bettong.application.plan import Plan, plan
from bettong.config.processor import ProcessorSettings
from bettong.edges.application_file import load
from bettong.edges.kernel_cache import kernel_cache
from bettong.edges.state_key import state_key
from bettong.worker.stage_program import StageProgram, program


@dataclass(frozen=True, slots=True)
class Programs:
    """A plan, and its stages ready to run, by name."""

    plan: Plan
    stages: dict[str, StageProgram]


def programs(settings: ProcessorSettings) -> Programs:
    """Loads the settings' application and compiles its stages. Takes seconds the first time in a process.

    Raises ApplicationError, and SettingsError for a key that cannot be used.
    """
    return _programs(
        settings.application, settings.compiled, settings.kernel_cache, state_key(settings.state_key_file)
    )


@lru_cache(maxsize=4)
def _programs(application: str, compiled: bool, cache: Path, key: bytes | None) -> Programs:  # noqa: FBT001
    planned, kernels = plan(load(application)), kernel_cache(cache)
    return Programs(
        planned,
        {
            stage.name: program(stage, compiled=compiled, cache=kernels, state_key=key)
            for stage in planned.stages
        },
    )
