"""Asks a deployment once a second, beside the screen: what does not answer never holds a key up."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import replace

from bettong.cli.top.lines import Picture
from bettong.closing import Closing
from bettong.errors import BettongError
from bettong.inspection.live.watch import DeploymentWatch
from bettong.inspection.watched import watched

INTERVAL_S = 1.0
# Of the interval, for reading dead letters.
_READING_S = 0.3


class Asking(Closing):
    """A thread that calls `show` with what it found, and why it could not ask. It dies with its process."""

    def __init__(self, watch: DeploymentWatch, show: Callable[[Picture], object]) -> None:
        """Begins; `watch` is closed by it, `show` called in its thread."""
        self._watch = watch
        self._show = show
        self._ends = threading.Event()
        threading.Thread(target=self._run, name="asking", daemon=True).start()

    def close(self) -> None:
        """Ends it after its question under way, for which this does not wait."""
        self._ends.set()

    def _run(self) -> None:
        picture = Picture()
        while not self._ends.is_set():
            begun_s = time.monotonic()
            picture = self._next(picture)
            if not self._ends.is_set():
                self._show(picture)
            self._ends.wait(max(0.0, INTERVAL_S - (time.monotonic() - begun_s)))
        self._watch.close()

    def _next(self, before: Picture) -> Picture:
        try:
            answer = self._watch.inspect()
            found = watched(before.found, answer, at_s=time.monotonic(), unix_s=time.time())
        except BettongError as error:
            return replace(before, fault=str(error))
        except Exception as error:  # noqa: BLE001 - records that nobody foresaw must not blind who watches
            return replace(before, fault=f"what services say cannot be read: {error!r}")
        picture = replace(before, found=found, fault="", reasons_fault="")
        if "kafka" in answer.away:
            return replace(picture, reasons_fault="Kafka, which keeps them, does not answer")
        try:
            return replace(picture, reasons=self._watch.reasons(_READING_S))
        except BettongError as error:
            return replace(picture, reasons_fault=str(error))
