"""A run whose code is reloaded within the same Java and Spark; if the new code is refused, the old code runs on."""

import time
from collections.abc import Callable, Mapping

from bettong.config.processor import ProcessorSettings
from bettong.errors import FINAL_ERRORS, BettongError, ReferenceLoadError
from bettong.logs import Logger
from bettong_processor.application_code import ApplicationCode, CodeChange
from bettong_processor.supervision import Run

# Between two checks of the files; a change is loaded at the second check that finds it.
_POLL_S = 0.1
_STOP_S_MAX = 20.0
# Errors of new code's start for which the old code is started again.
_REFUSED: tuple[type[BettongError], ...] = (*FINAL_ERRORS, ReferenceLoadError)


class ChangingRun:
    """A `supervision.Run` that replaces the run within it: `start` starts one, from settings that name the code."""

    def __init__(self, code: ApplicationCode, start: Callable[[ProcessorSettings], Run], log: Logger) -> None:
        """Starts the current code. Raises the errors of `start`."""
        self._code = code
        self._start = start
        self._log = log
        self._run = start(code.settings)

    @property
    def name(self) -> str:
        """See Run."""
        return self._run.name

    def waits_for(self) -> str:
        """See Run."""
        return self._run.waits_for()

    def metrics(self) -> Mapping[str, str | float]:
        """See Run."""
        return self._run.metrics()

    def ended(self, wait_s: float) -> bool:
        """See Run. Checks for new code, and switches to it, meanwhile."""
        until_s = time.monotonic() + wait_s
        while (left_s := until_s - time.monotonic()) > 0:
            if (change := self._code.poll()) is not None:
                self._apply_change(change)
            if self._run.ended(min(left_s, _POLL_S)):
                return True
        return False

    def leave(self) -> None:
        """See Run."""
        self._run.leave()

    def stop(self, wait_s: float) -> None:
        """See Run."""
        self._run.stop(wait_s)

    def _apply_change(self, change: CodeChange) -> None:
        if change.refused or not change.is_new:
            self._refuse(change, change.refused)
            return
        self._log.info("new code", edition=change.reference)
        self._run.stop(_STOP_S_MAX)
        try:
            # The start checks whether the new code can restore the saved states, before anything is folded.
            self._run = self._start(self._code.settings_of(change.reference))
        except _REFUSED as error:
            self._refuse(change, str(error))
            self._run = self._start(self._code.settings)
        else:
            self._code.accept(change)

    def _refuse(self, change: CodeChange, why: str) -> None:
        if why:
            self._log.warning("new code is refused, the old code runs on", reason=why)
        self._code.refuse(change, why)
