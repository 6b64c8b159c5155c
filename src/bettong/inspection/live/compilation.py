"""Compiles an application only to find its mistakes: nothing runs."""

from __future__ import annotations

from bettong.application.plan import Plan
from bettong.config.service import ServiceSettings
from bettong.edges.kernel_cache import kernel_cache
from bettong.inspection.live.application import loaded_plan
from bettong.worker.stage_program import program


def compiled_plan(application: str) -> Plan:
    """See `loaded_plan`; also compiles its functions, which takes some seconds the first time."""
    planned = loaded_plan(application)
    cache = kernel_cache(ServiceSettings.model_fields["kernel_cache"].default)
    for stage in planned.stages:
        # No state is saved here, so any key will do.
        program(stage, compiled=True, cache=cache, state_key=b"check")
    return planned
