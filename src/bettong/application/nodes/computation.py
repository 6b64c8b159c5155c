"""What runs in a stage."""

from __future__ import annotations

from typing import ClassVar

from bettong.application.execution_mode import ExecutionMode
from bettong.application.nodes.node import Derived
from bettong.application.on_error import OnError
from bettong.application.reference_source import ReferenceSource
from bettong.application.returns import Returns


class Computation(Derived):
    """What is said here of a kind of computation is all that others ask of it."""

    on_error: OnError
    # That of `Stream` which makes it: what people know it by.
    method: str
    # Whether it asks of each message that it reads if that is late: see `Stage.judges_lateness`.
    judges_lateness: ClassVar[bool] = False
    # Whether messages in order, too, must find fired what was due before them: see `Stage`.
    needs_each_watermark: bool = False
    # What a function of it returns for a message.
    returns: Returns = Returns.MANY

    @property
    def failing(self) -> Computation:
        """The computation that could not process what this one cannot process."""
        return self

    @property
    def reference(self) -> ReferenceSource | None:
        """The table that is loaded for it from elsewhere, if any."""
        return None

    @property
    def goes_by_event_time(self) -> bool:
        """Whether it waits for watermarks."""
        return False

    @property
    def mode(self) -> ExecutionMode:
        """How its functions are run."""
        return ExecutionMode.PYTHON
