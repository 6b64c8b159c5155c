"""The locations in users' code at which messages fail, each to be logged once a process."""

from __future__ import annotations

from dataclasses import dataclass, field

# Distinct locations of a process: nobody reads more of them, and each takes a few hundred bytes.
SITES_MAX = 100


@dataclass(frozen=True, slots=True)
class FailureSite:
    """The first failed message at a location: its computation, the reason, and the traceback, innermost line last."""

    computation: str
    reason: str
    traceback: tuple[str, ...]


@dataclass(slots=True)
class FailureSites:
    """The first SITES_MAX locations of a process. Used by one thread.

    A location is a computation, an error's class and the user's line that raised it; errors outside users' functions
    have none. `new`: those that are not logged yet.
    """

    new: list[FailureSite] = field(default_factory=list)
    _known: set[tuple[str, str, str]] = field(default_factory=set)

    def note(self, computation: str, reason: str, traceback: tuple[str, ...]) -> None:
        """Notes a failed message. Cheap, as it is called for each."""
        if not traceback or len(self._known) >= SITES_MAX:
            return
        # The text before the colon is the error's class.
        site = (computation, reason.partition(":")[0], traceback[-1])
        if site not in self._known:
            self._known.add(site)
            self.new.append(FailureSite(computation, reason, traceback))

    def take_new(self) -> list[FailureSite]:
        """Returns the new locations, and empties `new`."""
        new, self.new = self.new, []
        return new
