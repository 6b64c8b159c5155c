"""Polls a deployment once a second, in a thread: a service that does not answer never blocks a key press."""

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
# The part of the interval for reading dead letters.
_READING_S = 0.3


class DeploymentPoller(Closing):
    """A daemon thread that calls `show` with what it found, or why it found nothing."""

    def __init__(self, watch: DeploymentWatch, show: Callable[[Picture], object]) -> None:
        """Starts. The thread closes `watch` at its end, and calls `show`."""
        self._watch = watch
        self._show = show
        self._ends = threading.Event()
        threading.Thread(target=self._run, name="asking", daemon=True).start()

    def close(self) -> None:
        """Ends the thread after its poll under way, without waiting for it."""
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
        except Exception as error:  # noqa: BLE001 - an unforeseen record must not end the display
            return replace(before, fault=f"the services' records cannot be read: {error!r}")
        picture = replace(before, found=found, fault="", reasons_fault="")
        if "kafka" in answer.away:
            return replace(picture, reasons_fault="Kafka, which stores them, does not answer")
        try:
            return replace(picture, reasons=self._watch.reasons(_READING_S))
        except BettongError as error:
            return replace(picture, reasons_fault=str(error))
