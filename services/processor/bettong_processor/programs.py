"""Loads and compiles the application's stages, once a process; Spark's forked workers inherit them."""

from dataclasses import dataclass
from functools import lru_cache
from pathlib import Path

from bettong.application.plan import Plan, plan
from bettong.config.processor import ProcessorSettings
from bettong.edges.application_file import load
from bettong.edges.kernel_cache import kernel_cache
from bettong.edges.state_key import state_key
from bettong.worker.partition import Assignment, PartitionWorker
from bettong.worker.stage_program import StageProgram, program

# Of a worker that folds nothing.
_FRAME_BYTES_MAX = 64 * 1024


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
    stages = {
        stage.name: program(stage, compiled=compiled, cache=kernels, state_key=key)
        for stage in planned.stages
    }
    for each in stages.values():
        _warm_restore(
            each, Assignment(planned.application, 0, partitions=1, frame_bytes_max=_FRAME_BYTES_MAX)
        )
    return Programs(planned, stages)


def _warm_restore(ready: StageProgram, assignment: Assignment) -> None:
    """Restores an empty state: the first restore of a process loads kernels and modules, for 13 ms of CPU.

    A partition that moves to a new worker would pause for that.
    """
    _, data = PartitionWorker(ready, assignment).increment()
    PartitionWorker(ready, assignment).restore(data)
