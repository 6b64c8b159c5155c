"""Every message moves its key's total, and every so many of a key show it: few results, and one message that is lost,
doubled or out of place changes all that follow for its key.
"""

from dataclasses import dataclass

import bettong
from bettong import i32, i64

# Messages of a key for one result.
SHOWN_EVERY = 500
# Keeps the digest within 64 bits when it is multiplied.
MODULUS = 2**31 - 1


@dataclass(slots=True)
class Amount:
    """What a key is moved by."""

    key: i32
    amount: i32


@dataclass(slots=True)
class Total:
    """A key after so many messages. `digest` depends on every amount, and on their order."""

    key: i32
    count: i64
    digest: i64


@dataclass(slots=True)
class Moved:
    """The state of a key."""

    count: i64 = 0
    digest: i64 = 0


@bettong.compiled
def move(message: Amount, state: Moved) -> Total | None:
    """Adds a message to its key."""
    state.count += 1
    state.digest = (state.digest * 31 + message.amount) % MODULUS
    if state.count % SHOWN_EVERY == 0:
        return Total(message.key, state.count, state.digest)
    return None


app = bettong.Application("totals")
app.source("amounts", schema=Amount, key="key").stateful(move, state=Moved).sink("totals")
