"""`bettong top` on a screen of a test: what it shows of pictures, as text, and how it looks."""

import asyncio
import time
from collections.abc import Awaitable, Callable
from dataclasses import dataclass, field
from typing import Any

from textual.pilot import Pilot

from bettong.cli.top.app import TopApp
from bettong.cli.top.lines import Picture
from bettong.cli.top.live import LiveTopApp
from bettong.inspection.live.watch import DeploymentWatch
from tests.samples.watched_deployment import BEGUN_S

SIZE = (80, 24)
_ANSWER_S_MAX = 30.0


@dataclass(slots=True)
class Clock:
    """Seconds since the sample began."""

    now_s: float = 0.0

    def unix_s(self) -> float:
        return BEGUN_S + self.now_s

    def monotonic_s(self) -> float:
        return self.now_s


@dataclass(slots=True)
class Screen:
    """A `TopApp` that runs, and who types."""

    app: TopApp
    pilot: Pilot[None]
    clock: Clock = field(default_factory=Clock)

    async def show(self, picture: Picture) -> None:
        self.app.post_message(TopApp.Shown(picture))
        await self.settle()

    async def press(self, *keys: str) -> None:
        await self.pilot.press(*keys)
        await self.settle()

    async def settle(self) -> None:
        """Until all that was posted is done, and what it posted in turn."""
        for _ in range(3):
            await self.pilot.pause()

    def lines(self) -> list[str]:
        """The screen as text."""
        strips = self.app.screen._compositor.render_strips()
        return ["".join(segment.text for segment in strip).rstrip() for strip in strips]

    def text(self) -> str:
        return "\n".join(self.lines()) + "\n"

    def colours(self, text: str) -> set[str]:
        """The colours of letters in which a text stands on the screen."""
        strips = self.app.screen._compositor.render_strips()
        found = [segment for strip in strips for segment in strip if text in segment.text]
        return {str(segment.style.color.name) for segment in found if segment.style and segment.style.color}


def on_screen(
    play: Callable[[Screen], Awaitable[Any]], *, at_s: float = 0.0, size: tuple[int, int] = SIZE
) -> None:
    """Runs `play` before an empty screen; the clock stands at `at_s`."""

    async def run() -> None:
        clock = Clock(at_s)
        app = TopApp(clock.monotonic_s, clock.unix_s)
        async with app.run_test(size=size) as pilot:
            await play(Screen(app, pilot, clock))

    asyncio.run(run())


def pages_of(watch: DeploymentWatch, keys: str, *, size: tuple[int, int]) -> list[list[str]]:
    """The lines of the pages that these keys lead to, of a deployment that runs, once something is known of it."""

    async def run() -> list[list[str]]:
        app = LiveTopApp(watch)
        async with app.run_test(size=size) as pilot:
            screen, until_s = Screen(app, pilot), time.monotonic() + _ANSWER_S_MAX
            while app.picture.found is None or app.picture.found.numbers is None:
                assert time.monotonic() < until_s, f"no answer: {app.picture.fault}"
                await pilot.pause(0.1)
            pages = []
            for key in keys:
                await screen.press(key)
                pages.append(screen.lines())
            return pages

    return asyncio.run(run())
