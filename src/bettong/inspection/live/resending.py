"""Sends dead letters to their sources again."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

from bettong.application.plan import Plan
from bettong.client.sender import Sender
from bettong.errors import ClientError, RefusedError
from bettong.frames.dead_letter_id import DeadLetterId
from bettong.inspection.dead_letters import Found, ResendMark
from bettong.inspection.retry import Cannot, Resend, decide

_REASONS_MAX = 20

# One session sends, the next one leaves the mark; if Redis lost its data between them, one more is needed.
_SESSIONS_MAX = 4


class Resending:
    """Decides on one dead letter after the other, sends its message, and counts. `target` None: a dry run."""

    def __init__(
        self, plan: Plan, marks: Mapping[DeadLetterId, ResendMark], target: str | None, *, repeat: bool
    ) -> None:
        self.sent = self.refused = self.held = self.already = 0
        self._plan = plan
        self._marks = marks
        self._target = target
        self._repeat = repeat
        self._reasons: Counter[str] = Counter()

    def retry(self, found: Found, now_ns: int) -> str | None:
        """Sends the message of a dead letter, and returns the outcome; None when it cannot be sent, or was before."""
        mark = self._marks.get(found.id)
        decision = decide(self._plan, found, mark, repeat=self._repeat, now_ns=now_ns)
        if isinstance(decision, Cannot):
            if mark is not None and mark.done:
                self.already += 1
            else:
                self._hold(decision.reason)
            return None
        if self._target is None:
            self.sent += 1
            return f"{found.id} would be sent to {decision.source}"
        try:
            taken = send_again(self._target, found.id, decision)
        except RefusedError as error:
            self._hold(str(error))
            return None
        self.refused += not taken
        self.sent += 1
        also = "" if taken else ", which refused it again: it is a new dead letter"
        return f"{found.id} sent to {decision.source}{also}"

    def summary(self) -> Iterator[str]:
        """The totals, and why the rest was not sent."""
        for reason, count in self._reasons.most_common():
            yield f"{count:,} cannot be sent again: {reason}"
        verb = "would be sent" if self._target is None else "sent"
        also = f", {self.refused:,} of them refused again" if self.refused else ""
        yield f"{self.sent:,} {verb}{also}; {self.already:,} were sent before, {self.held:,} cannot be sent again"

    def _hold(self, reason: str) -> None:
        self.held += 1
        known = reason in self._reasons or len(self._reasons) < _REASONS_MAX
        self._reasons[reason if known else "other reasons (`show` names each)"] += 1


def send_again(target: str, id_: DeadLetterId, resend: Resend) -> bool:
    """Sends a dead letter's message, and leaves a mark of that; returns whether the source could read it.

    The stream is named after the dead letter and the message is its frame 1, so a consumer that has seen it skips it
    as a duplicate. The stream ends with each session, so no watermark waits for it; consumers keep its number for as
    long as that of a silent one. A session leaves the mark if the sender knew at its opening that the frame had
    arrived. If not, because the leases of streams were lost in between, the frame is sent once more. Raises
    ClientError, also when no session left the mark.
    """
    taken = True
    for _ in range(_SESSIONS_MAX):
        with Sender(target, resend.source, id_.stream, finite=True) as sender:
            if sender.acknowledged:
                return taken
            if resend.row is not None:
                sender.send_rows([resend.row], sequence=1)
            else:
                sender.send_messages([resend.message], sequence=1)
            sender.flush()
            taken = sender.dead_letters == 0
    raise ClientError(
        f"dead letter {id_}: its message was sent to source {resend.source!r}, but the sender at {target} forgot it"
        f" {_SESSIONS_MAX} times before it was marked; see that Redis keeps its data, and run the command again within"
        " 12 hours: until then the message counts once"
    )
