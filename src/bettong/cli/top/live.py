"""The screen of a deployment that runs."""

from __future__ import annotations

import time

from bettong.cli.top.app import TopApp
from bettong.cli.top.asking import Asking
from bettong.inspection.live.watch import DeploymentWatch


class LiveTopApp(TopApp):
    """Asks `watch` for as long as it is on the screen."""

    def __init__(self, watch: DeploymentWatch) -> None:
        super().__init__(time.monotonic, time.time)
        self._watch = watch
        self._asking: Asking | None = None

    def on_mount(self) -> None:
        """Begins to ask."""
        super().on_mount()
        self._asking = Asking(self._watch, lambda picture: self.post_message(self.Shown(picture)))

    def on_unmount(self) -> None:
        """Asks no more."""
        if self._asking is not None:
            self._asking.close()
