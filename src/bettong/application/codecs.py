"""How the states of a plain Python function are stored, where not in the safe form that is the default."""

from typing import Any, final

from bettong.application.execution_mode import ExecutionMode
from bettong.errors import ApplicationError


@final
class Pickle:
    """`stateful(..., state_codec=bettong.Pickle)`: states are pickles, signed by a key that the store does not hold.

    For states of classes that are more than their fields. Pickle runs what its bytes say, so each is signed
    (HMAC-SHA-256) by the key in the file of `BETTONG_STATE_KEY_FILE`, and none is read whose signature is wrong: who
    can write the store, and not read the key, can have nothing run. Without a key an application is refused at start.
    """


def check_codec(name: str, codec: Any, mode: ExecutionMode) -> None:
    """Refuses what is no codec, and one for states that are no Python objects. Raises ApplicationError."""
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
