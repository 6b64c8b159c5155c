"""Prepares a spec: finds everything that can be wrong with it before anything runs."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from bettong.application.plan import Plan, plan
from bettong.chaos import disk
from bettong.chaos.feeding import InputFeed, feeds
from bettong.chaos.outputs import defaults, table
from bettong.chaos.spec import Compare, Fill, Order, OutputComparison, Spec
from bettong.chaos.timetable import PlannedFault, timetable
from bettong.config.service import ServiceSettings
from bettong.edges.application_file import load
from bettong.errors import SchemaError, SettingsError


@dataclass(frozen=True, slots=True)
class PreparedRun:
    """A spec with its application, inputs and faults. `not_tried`: kinds that this machine cannot do, and why."""

    spec: Spec
    plan: Plan
    feeds: list[InputFeed]
    outputs: dict[str, OutputComparison]
    faults: tuple[PlannedFault, ...]
    not_tried: dict[str, str]
    rounds: int

    @property
    def needs_undisturbed_run(self) -> bool:
        """Whether the golden output of a sink, or the dead letters of a crowd, must come from an undisturbed run."""
        unknown = (each.equals is None and each.expected is None for each in self._own_outputs)
        return any(unknown) or any(fault.row for fault in self.faults)

    @property
    def golden_from(self) -> str:
        """Where the golden output comes from, for people."""
        if self.needs_undisturbed_run:
            return "an undisturbed run"
        given = any(each.expected is not None for each in self._own_outputs)
        return "the expected files" if given else "the input"

    @property
    def _own_outputs(self) -> list[OutputComparison]:
        return [self.outputs[sink.name] for sink in self.plan.sinks]


def prepare(spec: Spec, folder: Path) -> PreparedRun:
    """`folder`: paths of inputs and expected files are relative to it; that of the application is relative to the
    working directory.

    Raises ApplicationError, SettingsError and SchemaError for mistakes in application, spec and inputs.
    """
    planned = plan(load(spec.workload.application))
    outputs = _outputs(spec, planned, folder)
    faults = timetable(spec)
    if planned.sources[0].decoder is None and any(fault.row for fault in faults):
        raise SettingsError(
            f"nemeses.row: source {planned.sources[0].name!r}, the first one, has no decoder and so takes no rows;"
            " leave row out, or describe a source with a decoder first"
        )
    why = disk.why_not()
    not_tried = {"fill": why} if why is not None and any(each.kind == "fill" for each in faults) else {}
    rounds = max(1, math.ceil(spec.duration_s * spec.workload.rounds_per_s))
    found = feeds(
        spec.workload,
        planned,
        folder,
        rounds=rounds,
        frame_bytes_max=_frame_bytes_max(spec.workload.settings),
    )
    return PreparedRun(
        spec=spec,
        plan=planned,
        feeds=found,
        outputs=outputs,
        faults=tuple(fault for fault in faults if fault.kind not in not_tried),
        not_tried=not_tried,
        rounds=rounds,
    )


def disk_mb(spec: Spec) -> int | None:
    """The size of the file system that the spec needs; None when any will do."""
    return max((each.disk_mb for each in spec.nemeses if isinstance(each, Fill)), default=None)


def _outputs(spec: Spec, planned: Plan, folder: Path) -> dict[str, OutputComparison]:
    found = defaults(planned)
    for sink, output in spec.invariants.outputs.items():
        if sink not in found:
            raise SettingsError(f"invariants.outputs.{sink}: no such sink; there are {', '.join(found)}")
        if (
            output.compare is Compare.BYTES
            and spec.workload.order is Order.FREE
            and len(spec.workload.inputs) > 1
        ):
            raise SettingsError(
                f'invariants.outputs.{sink}.compare = "bytes": inputs fed concurrently (order = "free") meet in'
                ' another order each time; compare "keys" or "messages", or feed them in turns'
            )
        found[sink] = output
        if output.expected is not None:
            found[sink] = output.model_copy(
                update={"expected": _checked(sink, output, folder / output.expected)}
            )
    unclear = [sink for sink, output in found.items() if output is None]
    if unclear:
        raise SettingsError(
            f"sink {unclear[0]}: its messages are encoded, and those of several partitions meet after a key_by in any"
            f" order; say in a spec how they are delimited: [invariants.outputs.{unclear[0]}] with compare and split"
        )
    return {sink: output for sink, output in found.items() if output is not None}


def _checked(sink: str, output: OutputComparison, file: Path) -> Path:
    """A file of expected messages, if it can be compared as the sink's."""
    try:
        table([(file.name, file.read_bytes())], output)
    except OSError as error:
        fault = error.strerror or str(error)
    except (SchemaError, ValueError, AttributeError) as error:  # not JSON, or not an object
        fault = str(error)
    else:
        return file
    raise SettingsError(
        f"invariants.outputs.{sink}.expected: {file} cannot be compared: {fault}; it must hold the expected messages,"
        " as split and key say"
    )


def _frame_bytes_max(settings: dict[str, str]) -> int:
    given = settings.get("frame_bytes_max")
    try:
        return (
            int(given) if given is not None else int(ServiceSettings.model_fields["frame_bytes_max"].default)
        )
    except ValueError:
        raise SettingsError(
            f"workload.settings.frame_bytes_max = {given!r}: expected a number of bytes"
        ) from None
