"""How the states of a plain Python function are stored, where not by the safe default codec."""

from typing import Any, final

from bettong.application.execution_mode import ExecutionMode
from bettong.errors import ApplicationError


@final
class Pickle:
    """`stateful(..., state_codec=bettong.Pickle)`: states are pickles, signed by a key that the store does not hold.

    For states of classes that are more than their fields. Reading a pickle may run code, so each is signed
    (HMAC-SHA-256) with the key in the file `BETTONG_STATE_KEY_FILE`, and one with a wrong signature is not read:
    someone who can write to the store, but cannot read the key, cannot run code. Without a key the application does not
    start.
    """


def check_codec(name: str, codec: Any, mode: ExecutionMode) -> None:
    """Refuses what is not a codec, and a codec for states that are not Python objects. Raises ApplicationError."""
    if codec is None:
        return
    if codec is not Pickle:
        raise ApplicationError(
            f"stateful {name!r}: state_codec={codec!r}, expected bettong.Pickle or nothing"
        )
    if mode is not ExecutionMode.PYTHON:
        raise ApplicationError(
            f"stateful {name!r}: its states are records of numbers, which are never pickled: leave out state_codec"
        )
