"""Batches as connectors get them, without the log that they come from."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from bettong.frames.frame import Frame
from bettong.identifiers import Origin, SequenceNumber
from bettong_receiver.delivery.connector import FrameMessages, MovingPosition, SinkBatch
from bettong_receiver.positions import PositionKey
from bettong_receiver.progress import DeliveryProgress, SinkPartition

APPLICATION = "app"


def sink_batch(
    partition: int,
    messages: Sequence[Any],
    offset: int,
    refusing: Callable[[Mapping[int, str]], bytes] | None = None,
) -> SinkBatch[Any]:
    """Messages of one frame for sink `notes`, and the position at `offset` behind them."""
    frame = Frame(
        origin=Origin("notes/x/0"), sequence=SequenceNumber(offset), previous=SequenceNumber(offset - 1)
    )
    frames = [FrameMessages(offset - 1, frame, messages)] if messages else []
    moving = MovingPosition(PositionKey(APPLICATION, "notes", partition), DeliveryProgress(offset))
    return SinkBatch(SinkPartition("notes", partition), frames, moving, refusing)
