"""The sender's state, and what it has done since it started. Used on the event loop; `metrics` from any thread."""

from dataclasses import dataclass, field
from enum import Enum

from bettong import metrics
from bettong.frames.refused import reason_text
from bettong.identifiers import Origin, SequenceNumber, stream_of
from bettong.ingest.session import Taken
from bettong.services import SENDER


class State(Enum):
    """See `bettong.metrics.STATE`."""

    STARTING = "starting"
    WAITING = "waiting"
    RUNNING = "running"
    STOPPING = "stopping"


@dataclass(slots=True)
class SenderStatus:
    """The state, since when (Unix s), and why, as `detail`; counts since the start.

    By source, `sources`: why its external system is not read; `source_lags`: that system's records that are not read
    yet; `watermark_lags`: in seconds.
    """

    since_s: int
    state: State = State.STARTING
    detail: str = ""
    messages: int = 0
    frames: int = 0
    sessions: int = 0
    refused: int = 0
    dead_letters: int = 0
    dead_letter_last: str = ""
    skipped: int = 0
    ticks: int = 0
    sources: dict[str, str] = field(default_factory=dict)
    source_lags: dict[str, int] = field(default_factory=dict)
    watermark_lags: dict[str, float] = field(default_factory=dict)

    def enter(self, state: State, now_s: int, detail: str = "") -> None:
        """Sets the state, or another detail of the same state."""
        if state is not self.state:
            self.state, self.since_s = state, now_s
        self.detail = detail

    def count_frame(self, taken: Taken, origin: Origin, sequence: SequenceNumber) -> None:
        """Counts a client's frame that was appended."""
        self.frames += 1
        self.messages += taken.messages
        self.dead_letters += len(taken.refused)
        self.skipped += taken.skipped
        if taken.refused:
            last = taken.refused[-1]
            source = stream_of(origin)
            reason = reason_text(last.reason)
            self.dead_letter_last = f"{source}: {reason} ({origin}, frame {sequence}, message {last.index})"

    def metrics(self) -> dict[str, str | int | float]:
        """The live record."""
        waits = [*([self.detail] if self.detail else []), *list(self.sources.values())]
        state = State.WAITING if self.sources and self.state is State.RUNNING else self.state
        return {
            metrics.SERVICE.name: SENDER.name,
            metrics.STATE.name: state.value,
            metrics.SINCE.name: self.since_s,
            metrics.DETAIL.name: "; ".join(waits),
            **{f"{metrics.LAG.name}/{source}": lag for source, lag in list(self.source_lags.items())},
            metrics.MESSAGES.name: self.messages,
            metrics.FRAMES.name: self.frames,
            metrics.SESSIONS.name: self.sessions,
            metrics.REFUSED.name: self.refused,
            metrics.DEAD_LETTERS.name: self.dead_letters,
            metrics.DEAD_LETTER_LAST.name: self.dead_letter_last,
            metrics.SKIPPED.name: self.skipped,
            metrics.TICKS.name: self.ticks,
            **{f"{metrics.WATERMARK_LAG.name}/{name}": lag for name, lag in self.watermark_lags.items()},
        }
