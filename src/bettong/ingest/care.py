"""How to read a frame during which a sender crashed. Pure."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Care:
    """How to read a frame during which a sender crashed: message by message.

    `mark` is called with the index of a message before users' code sees it. `refused`: messages that are not to be
    read, and why; `all_refused`, unless empty, is why none is.
    """

    mark: Callable[[int], None]
    refused: Mapping[int, str] = field(default_factory=dict)
    all_refused: str = ""

    @property
    def refuses(self) -> bool:
        """Whether anything of the frame is not to be read."""
        return bool(self.all_refused or self.refused)

    def reason(self, row: int) -> str | None:
        """Why that message is refused unread; None when it is to be read."""
        return self.all_refused or self.refused.get(row)
