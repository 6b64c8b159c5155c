"""Errors that the receiver raises in addition to the library's.

BettongError
└── SinkError                   a sink cannot take results
    ├── PositionError           a position that cannot be trusted, or does not fit what it belongs to
    └── ConnectorUnavailableError  an external system is away or busy (see `delivery.connector`)

Exception
└── RefusedSubscription             a request that is refused, before its call ends (see `subscriptions`)
"""

from bettong.errors import BettongError


class SinkError(BettongError):
    """A sink cannot take results: a full disk, a folder that another receiver uses."""


class PositionError(SinkError):
    """A stored position is damaged or does not fit. Going on could lose or double results, so nothing does."""
