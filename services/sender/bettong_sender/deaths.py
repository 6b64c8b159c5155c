"""Frames during which senders crashed, and how the next attempt reads them. Pure.

    first death        the message is unknown, and perhaps it was another source's frame: those that were being
                       read are read again with care, message by message, while no other frame is read
    the next death     names the message: it is refused unread, the others of its frame are read
    twice unnamed, or four deaths in all: the whole frame is refused unread

So a message that ends the process ends it twice, and three in one frame cost the whole frame. A sender
that was killed from outside while it read a frame loses nothing by that: the frame is read once more, a little slower.
To be refused, a message must be under way at both deaths, and at the second one nothing else. Where something else was,
for another source's decoder did not return in time, it takes three deaths at each of which it was begun last.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from bettong.identifiers import Origin, SequenceNumber
from bettong.ingest.care import Care

# Of a death that no message is known of.
UNNAMED = -1

# A frame of several messages that kill costs one death for each and one more, and so many new starts, which on a
# cluster come later each time. A frame that costs more than this holds its source up for too long.
_DEATHS_MAX = 4
_UNNAMED_MAX = 2
# Deaths beside others that count as one that was alone. Whoever is merely beside the killer would have to be begun
# after it each time, although suspects are read one after the other.
_BESIDE_MIN = 3


@dataclass(frozen=True, slots=True)
class SenderDeath:
    """A sender ended while it read message `row` of a frame. `how`: what is known of the end, for people.

    `alone`: no other source's frame was being read, so it was this one, or somebody from outside. `last`: of all that
    was being read nothing was begun later.
    """

    id: str
    origin: Origin
    sequence: SequenceNumber
    row: int
    how: str
    alone: bool
    last: bool = False

    def encode(self) -> str:
        """As stored; the same death always as the same text."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def decode(cls, text: str) -> "SenderDeath | None":
        """None for text of another version, and for what somebody else wrote."""
        try:
            fields = json.loads(text)
        except (ValueError, RecursionError):
            return None
        if not isinstance(fields, dict) or fields.keys() != _TYPES.keys():
            return None
        # A bool is an int, too.
        if not all(type(fields[name]) is kind for name, kind in _TYPES.items()):
            return None
        return cls(**fields)


_TYPES = {"id": str, "origin": str, "sequence": int, "row": int, "how": str, "alone": bool, "last": bool}


def care_for(deaths: Iterable[SenderDeath], touch: Callable[[int], None]) -> Care | None:
    """What the deaths over one frame lead to; None when there were none."""
    found = list(deaths)
    if not found:
        return None
    beside = Counter(death.row for death in found if death.last and not death.alone)
    repeated = [row for row, count in beside.items() if count >= _BESIDE_MIN]
    counted = [death for death in found if death.alone or death.row in repeated]
    alone = Counter(death.row for death in found if death.alone)
    if alone[UNNAMED] >= _UNNAMED_MAX or UNNAMED in repeated or alone.total() + len(repeated) >= _DEATHS_MAX:
        how = counted[-1].how
        return Care(touch, all_refused=f"reading its frame killed the sender {len(counted)} times: {how}")
    return Care(
        touch,
        {
            death.row: f"a function of its source killed the sender {_times(beside[death.row])}: {death.how}"
            for death in counted
            if death.row != UNNAMED
        },
    )


def _times(beside: int) -> str:
    return f"{beside} times" if beside >= _BESIDE_MIN else "twice"
