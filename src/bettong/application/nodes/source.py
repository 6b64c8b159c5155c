"""`Application.source`: where messages enter."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from bettong.application.event_time import EventTime
from bettong.application.key import Key
from bettong.application.nodes.node import Uniform
from bettong.application.on_error import DEAD_LETTER, OnError

if TYPE_CHECKING:
    from bettong.application.external.transport import Transport
    from bettong.schema.decoded import Decoder


@dataclass(frozen=True, eq=False)
class Source(Uniform):
    """See `Application.source`. Without a key, whole frames are spread over the partitions."""

    key: Key | None
    decoder: Decoder | None
    on_error: OnError = DEAD_LETTER
    from_: Transport | None = None
    event_time: EventTime = field(default_factory=EventTime)
