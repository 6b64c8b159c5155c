"""States as pickles, each signed: the one module in which anything is unpickled, and only behind its signature.

    "BTK" version | HMAC-SHA-256, 32 bytes | pickle of (keys, states)

The signature covers the scope (application, stage, partition, offset, computation) and the pickle, so one of another
scope is refused, too. An older state of the same scope would be accepted: it is one that we have written.
"""

import hmac
import io
import pickle
from collections.abc import Collection
from hashlib import sha256
from types import SimpleNamespace
from typing import Any, Self

from bettong.errors import SnapshotError

MARK = b"BTK\x01"
_SIGNED = len(MARK) + sha256().digest_size

# Modules whose classes are loaded as they are from an older version's state.
_PLAIN = frozenset({"builtins", "collections", "datetime", "decimal", "numpy", "uuid", "copyreg"})

# Pickle's state of an object that has slots is a pair: its dictionary, and its slots.
_PLAIN_AND_SLOTS = 2


class SignedPickles:
    """The codec of `state_codec=bettong.Pickle`."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def encode(self, keys: Collection[Any], states: Collection[Any], scope: bytes) -> bytes:
        """See StateCodec. Raises what pickle raises."""
        pickled = pickle.dumps((list(keys), list(states)), protocol=5)
        return MARK + self._signature(scope, pickled) + pickled

    def decode(self, data: bytes, scope: bytes, *, old: bool) -> tuple[list[Any], list[Any]]:
        """See StateCodec."""
        signature, pickled = data[len(MARK) : _SIGNED], data[_SIGNED:]
        if data[: len(MARK)] != MARK or not hmac.compare_digest(signature, self._signature(scope, pickled)):
            raise SnapshotError(
                "it is not signed by the key in BETTONG_STATE_KEY_FILE for this state, so it is not read: give the key"
                " that it was saved with, or delete the state with `bettong state reset`"
            )
        file = io.BytesIO(pickled)
        keys, states = (OldStates(file) if old else pickle.Unpickler(file)).load()  # noqa: S301 - signed by us
        return keys, states

    def _signature(self, scope: bytes, pickled: bytes) -> bytes:
        made = hmac.new(self._key, MARK + len(scope).to_bytes(8) + scope, sha256)
        made.update(pickled)
        return made.digest()


class OldStates(pickle.Unpickler):
    """Reads pickled states whose classes may have changed since: each object is its fields, as attributes."""

    def find_class(self, module: str, name: str) -> Any:
        """A stand-in for every class that is not of the standard library's data types."""
        if module.partition(".")[0] in _PLAIN:
            return super().find_class(module, name)
        return _Old


class _Old(SimpleNamespace):
    """A state of a class that may be gone: whatever pickle restores becomes attributes."""

    def __new__(cls, *_: Any, **__: Any) -> Self:
        """Pickle passes what the class was made with, and calls no `__init__`."""
        return super().__new__(cls)

    def __setstate__(self, state: Any) -> None:
        plain, slots = state if isinstance(state, tuple) and len(state) == _PLAIN_AND_SLOTS else (state, None)
        for fields in (plain, slots):
            if isinstance(fields, dict):
                self.__dict__.update(fields)
            elif fields is not None:
                # A frozen dataclass with slots keeps its values without their names.
                self.__dict__["values"] = fields
