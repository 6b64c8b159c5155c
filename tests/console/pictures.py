"""Pictures of the console's places for the docs: of the recording as if it were of now, or of a console that runs.

python -m tests.console.pictures docs/images [http://127.0.0.1:7400]
"""

from __future__ import annotations

import argparse
import contextlib
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Literal

from playwright.sync_api import Browser, Page, expect

from tests.console.browsers import chromium
from tests.console.recordings import explained, recorded
from tests.console.sites import recorded_site, served
from tests.waiting import eventually

# By name: the place, the colours, and the height of the window.
PICTURES: dict[str, tuple[str, Literal["light", "dark"], int]] = {
    "console-overview": ("/", "light", 780),
    "console-application": ("/application", "light", 960),
    "console-accounts": ("/accounts", "dark", 570),
}
_WIDTH = 1280


@contextlib.contextmanager
def fresh_recording() -> Iterator[tuple[str, Callable[[], None]]]:
    """The address of a console that was told of the recording, and what tells it of the last look as of now."""
    looks = [explained(each) for each in recorded("visits")]
    later_s = time.time() - looks[-1].time_s
    with served(recorded_site(looks=[replace(each, time_s=each.time_s + later_s) for each in looks])) as site:
        yield site.url, lambda: site.look(replace(looks[-1], time_s=time.time()))


def take_pictures(browser: Browser, url: str, folder: Path, renew: Callable[[], None] = lambda: None) -> None:
    """One PNG each, of a console whose numbers are new."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, (place, colours, height) in PICTURES.items():
        context = browser.new_context(
            viewport={"width": _WIDTH, "height": height}, color_scheme=colours, timezone_id="UTC"
        )
        page = context.new_page()
        page.goto(url + place)
        expect(page.locator(".fresh")).to_be_visible()

        def is_live(page: Page = page) -> bool:
            renew()  # again where a machine is so busy that the last one is old when it is shown
            return page.locator(".fresh").inner_text() == "live"

        eventually(is_live, seconds=60, what="a page that is not old")
        page.screenshot(path=folder / f"{name}.png", animations="disabled")
        context.close()


def main() -> None:
    """Into a folder, of a suite of its own or of a console that runs."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, help="where pictures are written")
    parser.add_argument("address", nargs="?", help="of a console that runs (else a recorded suite's)")
    chosen = parser.parse_args()
    with chromium() as found:
        if chosen.address is not None:
            take_pictures(found, chosen.address, chosen.folder)
        else:
            with fresh_recording() as (address, look_again):
                take_pictures(found, address, chosen.folder, look_again)


if __name__ == "__main__":
    main()
