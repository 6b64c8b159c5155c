"""Why a call ends: the statuses of `protos/bettong/v1`, independent of gRPC."""

from collections.abc import Mapping
from enum import Enum
from types import MappingProxyType

from bettong.errors import BettongError, LogError


class Code(Enum):
    """How a call ends; the names are gRPC's."""

    NOT_FOUND = "NOT_FOUND"
    INVALID_ARGUMENT = "INVALID_ARGUMENT"
    RESOURCE_EXHAUSTED = "RESOURCE_EXHAUSTED"
    UNAVAILABLE = "UNAVAILABLE"
    ALREADY_EXISTS = "ALREADY_EXISTS"
    ABORTED = "ABORTED"


class Refusal(BettongError):
    """Ends a session. The text names the object, what was expected and the remedy; the client sees it.

    `metadata` is for the client's program: see the proto.
    """

    def __init__(self, code: Code, text: str, metadata: Mapping[str, str] = MappingProxyType({})) -> None:
        super().__init__(text)
        self.code = code
        self.metadata = metadata


def invalid(text: str) -> Refusal:
    """The client broke the contract."""
    return Refusal(Code.INVALID_ARGUMENT, text)


def exhausted(text: str) -> Refusal:
    """A limit was exceeded."""
    return Refusal(Code.RESOURCE_EXHAUSTED, text)


def unavailable(text: str) -> Refusal:
    """A temporary failure: the client reconnects and resends."""
    return Refusal(Code.UNAVAILABLE, text)


def aborted(text: str) -> Refusal:
    """Another session has taken the stream over."""
    return Refusal(Code.ABORTED, text)


def refused_by_log(error: LogError) -> Refusal:
    """The refusal of a frame that the log did not take."""
    return unavailable(f"the log did not take a frame: {error}; connect again and resend what has no receipt")
