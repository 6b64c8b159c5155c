"""Where in users' code messages fail: the places that a process has not spoken of yet, for its log."""

from __future__ import annotations

from dataclasses import dataclass, field

# Distinct places of a process: more of them nobody reads, and a place is a few hundred bytes.
SITES_MAX = 100


@dataclass(frozen=True, slots=True)
class FailureSite:
    """A message that failed first at a place: what could not process it, why, and where, the innermost line last."""

    computation: str
    reason: str
    traceback: tuple[str, ...]


@dataclass(slots=True)
class FailureSites:
    """The first SITES_MAX places of a process. Used by one thread.

    A place is a computation, an error's class and the user's line that raised it; what is not of a user's function
    has none. `new`: those that nobody has taken yet.
    """

    new: list[FailureSite] = field(default_factory=list)
    _known: set[tuple[str, str, str]] = field(default_factory=set)

    def note(self, computation: str, reason: str, traceback: tuple[str, ...]) -> None:
        """A message failed. Cheap: it is called for each."""
        if not traceback or len(self._known) >= SITES_MAX:
            return
        # What stands before the colon names the error's class.
        site = (computation, reason.partition(":")[0], traceback[-1])
        if site not in self._known:
            self._known.add(site)
            self.new.append(FailureSite(computation, reason, traceback))

    def take_new(self) -> list[FailureSite]:
        """Each place once."""
        new, self.new = self.new, []
        return new
