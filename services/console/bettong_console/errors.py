"""Errors of the console's requests.

BettongError
└── ConsoleRequestError         a request that cannot be answered, and why
"""

from bettong.errors import BettongError


class ConsoleRequestError(BettongError):
    """A request that cannot be answered: `status` is the HTTP status, the text says what was expected."""

    def __init__(self, status: int, text: str) -> None:
        super().__init__(text)
        self.status = status
