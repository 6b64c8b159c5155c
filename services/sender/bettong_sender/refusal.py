"""Why a call ends: the statuses of `protos/bettong/v1/ingest.proto`, and nothing of gRPC."""

from enum import Enum

from bettong.errors import BettongError


class Code(Enum):
    """How a call ends; the names are gRPC's."""

    NOT_FOUND = "NOT_FOUND"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    UNAVAILABLE = "UNAVAILABLE"


class Refusal(BettongError):
    """Ends a session. The text names the object, what was expected and the remedy; the client sees it."""

    def __init__(self, code: Code, text: str) -> None:
        super().__init__(text)
        self.code = code


def invalid(text: str) -> Refusal:
    """The client broke the contract."""
    return Refusal(Code.INVALID_ARGUMENT, text)


def exhausted(text: str) -> Refusal:
    """A limit was passed."""
    return Refusal(Code.RESOURCE_EXHAUSTED, text)


def unavailable(text: str) -> Refusal:
    """Not now: the client connects again and resends."""
    return Refusal(Code.UNAVAILABLE, text)
