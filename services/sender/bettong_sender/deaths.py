"""How a frame is read again during which senders crashed. Pure.

    first death        the message is unknown, and perhaps another source's frame was the cause: the frames that
                       were being read are read again, message by message, while no other frame is read
    the next death     identifies the message: it is refused unread, the rest of its frame is read
    two deaths without a known message, or four in all: the whole frame is refused unread

So a message that ends the process ends it twice, and three such messages in one frame cost the whole frame. A sender
that was killed from outside while it read a frame loses nothing: the frame is read once more, a little slower.
A message is refused only if it was being read at both deaths, and alone at the second. If another frame was being read
too, because another source's decoder did not return in time, it takes three deaths, at each of which it began last.
"""

import json
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass

from bettong.identifiers import Origin, SequenceNumber
from bettong.ingest.care import Care

# Row of a death whose message is unknown.
UNNAMED = -1

# A frame with several fatal messages costs one death for each and one more, and as many restarts, which a cluster
# delays longer each time. More than this would block the source for too long.
_DEATHS_MAX = 4
_UNNAMED_MAX = 2
# So many deaths during which other frames were read count as one during which it was read alone. An innocent frame
# would have to begin after the fatal one each time, although suspects are read one after the other.
_BESIDE_MIN = 3


@dataclass(frozen=True, slots=True)
class SenderDeath:
    """A sender ended while it read message `row` of a frame. `how`: the cause, as text for people.

    `alone`: no other source's frame was being read, so this frame was the cause, or a signal from outside. `last`: of
    all frames that were being read, this one began last.
    """

    id: str
    origin: Origin
    sequence: SequenceNumber
    row: int
    how: str
    alone: bool
    last: bool = False

    def encode(self) -> str:
        """The stored form; the same text for the same death."""
        return json.dumps(asdict(self), sort_keys=True)

    @classmethod
    def decode(cls, text: str) -> "SenderDeath | None":
        """Returns None for text of another version or program."""
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
    """How to read a frame after these deaths; None when there were none."""
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
