"""What a record of the log means: what fires before its messages, what they lead to, and what fires behind them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from bettong.application.plan import Stage
from bettong.application.timers import Clock
from bettong.frames.frame import Frame, FrameKind
from bettong.identifiers import ReferenceVersion
from tests.simulation.frame_contents import event_times_in, messages_in
from tests.simulation.interpreter import Interpreter
from tests.simulation.message_outcome import MessageOutcome, StoppedError


def meaning_of(
    interpreter: Interpreter,
    frame: Frame,
    stage: Stage,
    versions: Mapping[ReferenceVersion, tuple[str, int, Sequence[Any]]],
) -> Iterator[MessageOutcome]:
    """What a record leads to. Raises StoppedError. `versions`: of reference tables; see `Interpreter.switch`.

    Where a message is late, all that was due by the watermark before it has fired; else when it does makes no odds,
    unless windows that are not open matter, too: see `Stage.needs_each_watermark`.
    """
    yield from interpreter.advance(interpreter.watermark_ns, frame.ingest_ns)
    interpreter.end_states(Clock.LOG)
    if frame.reference is not None:
        interpreter.switch(*versions[frame.reference])
    before_ns = interpreter.watermark_ns
    is_data = frame.kind is FrameKind.DATA
    if is_data and interpreter.admits(frame.origin, frame.sequence, frame.previous):
        source = interpreter.graph[frame.stream]
        messages = messages_in(frame)
        times = event_times_in(frame) or [frame.ingest_ns] * len(messages)
        if source.kind == "source" and source.out_of_order_ns is not None:
            times = [message.at for message in messages]
        watermarks = [before_ns] * len(messages)
        own: list[int] = []
        if frame.message_watermarks and stage.judges_lateness:
            own = np.frombuffer(frame.message_watermarks, "<i8").tolist()
            watermarks = [max(before_ns, interpreter.origins.reached(frame.origin, each)) for each in own]
        for index, (message, at_ns) in enumerate(zip(messages, times, strict=True)):
            is_higher = watermarks[index] > interpreter.watermark_ns
            if own and (stage.needs_each_watermark or (is_higher and at_ns < watermarks[index])):
                # The frame itself may say less: it was written within a record of the stage before.
                interpreter.origins.reach(frame.origin, own[index])
                if is_higher:
                    yield from interpreter.advance(watermarks[index])
                    interpreter.end_states(Clock.EVENT)
            try:
                outcome = interpreter.take(frame.stream, message, at_ns, watermarks[index])
            except StoppedError as error:
                error.index = index
                raise
            outcome.index = index
            yield outcome
        interpreter.origins.reach(frame.origin, frame.watermark_ns)
    for origin, watermark_ns in frame.watermarks.items():
        interpreter.origins.reach(origin, watermark_ns)
    yield from interpreter.advance(interpreter.origins.watermark_ns, frame.ingest_ns)
    interpreter.end_states(Clock.EVENT)
