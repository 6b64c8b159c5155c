"""The messages of a frame that enter a stage: checked against its input, without those that are excluded."""

from collections.abc import Sequence

from bettong.application.plan import StageInput
from bettong.errors import FrameError
from bettong.frames.columns import Columns
from bettong.frames.frame import Frame
from bettong.worker.batch import Batch
from bettong.worker.exclusions import Exclusion
from bettong.worker.output.dead_letters import DeadLetters


def entering_columns(entry: StageInput, frame: Frame) -> Columns:
    """The messages of a frame. Raises FrameError when they do not fit this input."""
    if frame.columns is None or frame.schema != entry.schema.fingerprint:
        expected = f"columns of {entry.schema.name} (schema {entry.schema.fingerprint:016x})"
        raise FrameError(f"schema {frame.schema:016x}, expected {expected}")
    columns = Columns.of_payload(entry.schema, frame.columns)
    if columns.length != frame.count:
        raise FrameError(f"{columns.length} messages, but the frame says {frame.count}")
    return columns


def admitted_rows(
    entry: StageInput,
    columns: Columns,
    exclusion: Exclusion | None,
    indexes: Sequence[int] | None,
    dead_letters: DeadLetters,
) -> Batch:
    """The rows of a frame that enter. The others fail in the computation in which they killed a worker."""
    if indexes is not None:
        return Batch.of_part(entry, columns, [each for each in indexes if each < columns.length])
    assert exclusion is not None  # noqa: S101 - otherwise all rows enter
    refused = dict(exclusion.of_frame(columns.length))
    for index, why in refused.items():
        dead_letters.leave_out(why.computation, why.reason, index, is_logged=exclusion.is_logged)
    return Batch.of_part(entry, columns, [row for row in range(columns.length) if row not in refused])
