"""Log lines about decoders, key functions and event time functions that raise: one for each place in the code."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from structlog.stdlib import BoundLogger

from bettong.failure_sites import FailureSites
from bettong.frames.refused import Refused
from bettong.user_errors import traceback_of

# At most so many messages of a frame are noted, on the event loop: tens of thousands may fail, at a few sites.
_NOTED_MAX = 1000


@dataclass(frozen=True, slots=True)
class RefusalLog:
    """One sender's. Used on the event loop alone."""

    logger: BoundLogger
    sites: FailureSites = field(default_factory=FailureSites)

    def note(self, source: str, refused: Sequence[Refused]) -> None:
        """Logs each new place at which messages of a frame failed."""
        for each in islice(refused, _NOTED_MAX):
            self.sites.note(source, each.reason, traceback_of(each.reason))
        for site in self.sites.take_new():
            self.logger.warning(
                "messages fail in a user's function",
                source=site.computation,
                reason=site.reason,
                traceback=site.traceback,
            )
