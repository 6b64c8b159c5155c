"""Open windows and what holds them open, for `bettong status --json` and the console's page. Pure.

See `status_form`.
"""

from __future__ import annotations

from bettong.inspection.described_form import Described, unit_field
from bettong.inspection.open_windows import InputWatermark, OpenWindow, WaitsFor


class InputWatermarkStatus(Described):
    """The watermark of an input of a stage, in the partition where it is lowest."""

    stage: str = unit_field("name", "The stage that reads it.")
    input: str = unit_field("name", "The source, or the stage before.")
    is_of_stage: bool = unit_field(
        "true or false", "Whether the stage before writes it, rather than clients."
    )
    partition: int = unit_field("number", "The partition of `stage` where its watermark is lowest.")
    stream: str = unit_field(
        "name", "The slowest origin there: a client's stream, or a partition of the stage before."
    )
    live_origins: int = unit_field("origins", "That count there.")
    awaited_partitions: int = unit_field("partitions", "Of the stage before, that have reported nothing yet.")
    watermark_ns: int | None = unit_field("Unix ns", "The event time of that origin; null while unknown.")
    since_unix_s: float | None = unit_field(
        "Unix s", "Since when that has not moved, by the clock of senders; null while unknown."
    )
    since_at_least: bool = unit_field(
        "true or false", "Whether that may be longer: its worker has restarted since."
    )
    silent_s: float | None = unit_field("s", "For how long that origin has sent nothing; null without one.")
    idle_timeout_s: float | None = unit_field(
        "s", "After this time an origin is idle and holds nothing back; null: never."
    )
    idle_at_unix_s: float | None = unit_field(
        "Unix s", "When it becomes idle unless it sends something; null: never."
    )


class OpenWindowStatus(Described):
    """The oldest open window of a computation in some partitions; joins and timers by event time, too."""

    stage: str = unit_field("name", "Its stage.")
    computation: str = unit_field("name", "The computation.")
    kind: str = unit_field(
        "word",
        "window; session (windows that are not on a grid: until `due_ns` at the earliest), join, timer.",
    )
    start_ns: int | None = unit_field("Unix ns", "Of a window on a grid; null for others.")
    end_ns: int | None = unit_field("Unix ns", "The same.")
    due_ns: int = unit_field("Unix ns", "The watermark at which it closes.")
    partitions: int = unit_field("partitions", "In which it is open and the oldest.")
    partition: int = unit_field("number", "The one of these with the lowest watermark.")
    watermark_ns: int | None = unit_field("Unix ns", "The watermark there; null while unknown.")
    short_s: float | None = unit_field("s", "How much event time is missing there; null while unknown.")
    waits_for: str = unit_field(
        "word",
        f"What moves it next: {', '.join(WaitsFor)}. Records: of its log, not folded yet, which"
        " may have newer event times of `held_by`; clock: no origin is live.",
    )
    waiting_records: int | None = unit_field(
        "records", "In its log, not folded yet, whatever it waits for; null for none."
    )
    held_by: InputWatermarkStatus | None = unit_field("object", "The input that holds it; null for none.")


def input_watermark_status(found: InputWatermark) -> InputWatermarkStatus:
    """In this form."""
    return InputWatermarkStatus(
        stage=found.id.stage,
        input=found.source,
        is_of_stage=found.is_of_stage,
        partition=found.id.partition,
        stream=found.stream,
        live_origins=found.live,
        awaited_partitions=found.awaited,
        watermark_ns=found.watermark_ns or None,
        since_unix_s=found.since_ns / 1e9 if found.since_ns is not None else None,
        since_at_least=found.at_least,
        silent_s=found.silent_s,
        idle_timeout_s=found.idle_s,
        idle_at_unix_s=found.idle_at_ns / 1e9 if found.idle_at_ns is not None else None,
    )


def open_window_status(found: OpenWindow) -> OpenWindowStatus:
    """In this form."""
    hold = found.hold
    return OpenWindowStatus(
        stage=found.stage,
        computation=found.computation,
        kind=found.kind.value,
        start_ns=found.start_ns,
        end_ns=found.end_ns,
        due_ns=found.due_ns,
        partitions=found.partitions,
        partition=hold.id.partition,
        watermark_ns=hold.watermark_ns or None,
        short_s=found.short_s,
        waits_for=hold.waits_for.value,
        waiting_records=hold.waiting_records,
        held_by=input_watermark_status(hold.input) if hold.input is not None else None,
    )
