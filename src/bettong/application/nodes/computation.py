"""The base of the nodes that run in a stage."""

from __future__ import annotations

from typing import ClassVar

from bettong.application.execution_mode import ExecutionMode
from bettong.application.nodes.node import Derived
from bettong.application.on_error import OnError
from bettong.application.reference_source import ReferenceSource
from bettong.application.returns import Returns


class Computation(Derived):
    """A node that runs in a stage. Other modules rely only on what is declared here."""

    on_error: OnError
    # The method of `Stream` that makes it, as users know it.
    method: str
    # Whether it decides of each message that it reads whether that is late: see `Stage.judges_lateness`.
    judges_lateness: ClassVar[bool] = False
    # Whether timers that are due before a message must have fired before it, even if it is not late: see `Stage`.
    needs_each_watermark: bool = False
    # What its functions return for a message.
    returns: Returns = Returns.MANY

    @property
    def failing(self) -> Computation:
        """The computation to which failures of this one are attributed."""
        return self

    @property
    def reference(self) -> ReferenceSource | None:
        """The reference table that it joins with, if any."""
        return None

    @property
    def goes_by_event_time(self) -> bool:
        """Whether it has timers that wait for watermarks."""
        return False

    @property
    def mode(self) -> ExecutionMode:
        """How its functions are run."""
        return ExecutionMode.PYTHON
