"""Stages and keys as they are named on the command line."""

from __future__ import annotations

from typing import TYPE_CHECKING

import typer

if TYPE_CHECKING:
    from bettong.application.plan import Plan, Stage
    from bettong.schema.key_types import KeyValue


def stage_named(plan: Plan, name: str | None) -> Stage:
    """The stage of that name; the only one when none is given."""
    names = ", ".join(stage.name for stage in plan.stages)
    if name is None and len(plan.stages) > 1:
        raise typer.BadParameter(f"the application has several stages, give --stage: {names}")
    found = [stage for stage in plan.stages if name in (None, stage.name)]
    if not found:
        raise typer.BadParameter(f"--stage {name}: there is no such stage, only {names}")
    return found[0]


def key_in(stage: Stage, text: str) -> KeyValue:
    """The key, of the type that the stage's messages have: all its inputs have the same key type."""
    from bettong.inspection.message_keys import key_of

    keyed = [entry for entry in stage.inputs if entry.key is not None]
    if not keyed:
        raise typer.BadParameter(f"stage {stage.name} has no keys: its source has none")
    faults, found = [], []
    for entry in keyed:
        try:
            found.append(key_of(entry, text))
        except ValueError as error:
            faults.append(f"{entry.stream}: {error}")
    if not found:
        raise typer.BadParameter(f"--key {text}: no key of stage {stage.name}: {'; '.join(faults)}")
    return found[0]
