"""What a sender says in its log of decoders, key and event time functions that raise: each place once."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import islice

from structlog.stdlib import BoundLogger

from bettong.failure_sites import FailureSites
from bettong.frames.refused import Refused
from bettong.user_errors import traceback_of

# Noted of a frame, on the event loop: a frame may hold tens of thousands, and they fail at a few sites.
_NOTED_MAX = 1000


@dataclass(frozen=True, slots=True)
class RefusalLog:
    """Of one sender. Used on the event loop alone."""

    logger: BoundLogger
    sites: FailureSites = field(default_factory=FailureSites)

    def note(self, source: str, refused: Sequence[Refused]) -> None:
        """Messages of a frame become dead letters."""
        for each in islice(refused, _NOTED_MAX):
            self.sites.note(source, each.reason, traceback_of(each.reason))
        for site in self.sites.take_new():
            self.logger.warning(
                "messages fail in a user's function",
                source=site.computation,
                reason=site.reason,
                traceback=site.traceback,
            )
