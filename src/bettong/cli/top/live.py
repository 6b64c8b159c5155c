"""The screen of a deployment that runs."""

from __future__ import annotations

import time

from bettong.cli.top.app import TopApp
from bettong.cli.top.asking import DeploymentPoller
from bettong.inspection.live.watch import DeploymentWatch


class LiveTopApp(TopApp):
    """Polls `watch` for as long as it is on the screen."""

    def __init__(self, watch: DeploymentWatch) -> None:
        super().__init__(time.monotonic, time.time)
        self._watch = watch
        self._poller: DeploymentPoller | None = None

    def on_mount(self) -> None:
        """Starts to poll."""
        super().on_mount()
        self._poller = DeploymentPoller(self._watch, lambda picture: self.post_message(self.Shown(picture)))

    def on_unmount(self) -> None:
        """Stops polling."""
        if self._poller is not None:
            self._poller.close()
