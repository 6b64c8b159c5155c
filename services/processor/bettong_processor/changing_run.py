"""A run whose code changes: the same Java and Spark go on with new code, or with the old where the new is refused."""

import time
from collections.abc import Callable, Mapping

from bettong.config.processor import ProcessorSettings
from bettong.errors import FINAL_ERRORS, BettongError, ReferenceLoadError
from bettong.logs import Logger
from bettong_processor.application_code import ApplicationCode, CodeChange
from bettong_processor.supervision import Run

# Between two looks at the files; a save is taken up at the second that finds it.
_POLL_S = 0.1
_STOP_S_MAX = 20.0
# What the start of new code may raise that the code of before does not meet.
_REFUSED: tuple[type[BettongError], ...] = (*FINAL_ERRORS, ReferenceLoadError)


class ChangingRun:
    """A `supervision.Run`: one after the other, of `start`, each by the settings that name its code."""

    def __init__(self, code: ApplicationCode, start: Callable[[ProcessorSettings], Run], log: Logger) -> None:
        """Starts the code that runs. Raises what `start` raises."""
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
        """See Run. Takes up new code meanwhile."""
        until_s = time.monotonic() + wait_s
        while (left_s := until_s - time.monotonic()) > 0:
            if (change := self._code.poll()) is not None:
                self._take_up(change)
            if self._run.ended(min(left_s, _POLL_S)):
                return True
        return False

    def leave(self) -> None:
        """See Run."""
        self._run.leave()

    def stop(self, wait_s: float) -> None:
        """See Run."""
        self._run.stop(wait_s)

    def _take_up(self, change: CodeChange) -> None:
        if change.refused or not change.is_new:
            self._refuse(change, change.refused)
            return
        self._log.info("new code", edition=change.reference)
        self._run.stop(_STOP_S_MAX)
        try:
            # What it has saved last is looked at before anything is folded.
            self._run = self._start(self._code.settings_of(change.reference))
        except _REFUSED as error:
            self._refuse(change, str(error))
            self._run = self._start(self._code.settings)
        else:
            self._code.accept(change)

    def _refuse(self, change: CodeChange, why: str) -> None:
        if why:
            self._log.warning("new code is refused, the code of before runs on", reason=why)
        self._code.refuse(change, why)
