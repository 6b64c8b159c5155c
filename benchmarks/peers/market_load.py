"""Market Spread's messages, and their right answer: the steady load between two bells.

A bell is a wide quote and an order for each of the 350 symbols, so it gives a result for each. When those of the first
are there, whoever runs has started and serves every key; when those of the last are, it has taken every message.
"""

from dataclasses import replace
from functools import cache
from itertools import chain

import numpy as np

from benchmarks import plain_loop
from benchmarks.log_to_log import records_of
from benchmarks.peers.load import Load, Record
from benchmarks.peers.market import symbol_of
from benchmarks.workload import Workload, wire_messages, workload
from bettong.frames.columns import Array
from examples.market_spread_load import Columns, Round, instruments
from examples.market_spread_oracle import by_symbol, rejected

_TIME = b"20160902-16:00:00.000"
_WIDE, _NARROW = 0.08, 0.01
_LENGTH_BYTES = 4  # in front of a framed message; a record of Kafka needs none
_OPENING_FRAMES = 3  # the initial quotes, the first bell's quotes, its orders


@cache
def between_bells(messages: int) -> Workload:
    """The load with `messages` messages between the bells, and the bells."""
    of = instruments(rejecting=True)
    usual = np.where(of.rejecting, _WIDE, _NARROW)
    calm = Round(_quotes(usual), {name: column[:0] for name, column in _orders(b"").items()})
    rounds = [_bell(b"BELL 1"), calm, *workload(messages).rounds, _bell(b"BELL 2")]
    return Workload(rounds, rejected(rounds))


def market_load(messages: int) -> Load:
    """A message a record."""
    between = between_bells(messages)
    messages_of = [message[_LENGTH_BYTES:] for message in wire_messages(between)]
    records = [Record(message, symbol_of(message)) for message in messages_of]
    timed = between.messages - between.rounds[0].messages  # the initial quotes come before all rounds
    bell = len(instruments(rejecting=True).symbols)
    return Load(
        records[:-timed],
        records[-timed:],
        timed,
        bell,
        between.rejected,
        lambda results: by_symbol(b"".join(results)),
    )


def market_frames(messages: int, partitions: int) -> Load:
    """The same messages in the records that Bettong's senders would append to its log."""
    records = [
        [Record(frame, b"", at) for at, frame in split]
        for split in records_of(between_bells(messages), partitions)
    ]
    opening, timed = records[:_OPENING_FRAMES], records[_OPENING_FRAMES:]
    return replace(market_load(messages), opening=list(chain(*opening)), timed=list(chain(*timed)))


def market_loop(messages: int) -> float:
    """Messages a second of the plain loop."""
    return plain_loop.messages_per_s(between_bells(messages))


def _bell(order_id: bytes) -> Round:
    return Round(_quotes(_WIDE), _orders(order_id))


def _quotes(spread: float | Array) -> Columns:
    of = instruments(rejecting=True)
    return {
        "symbol": of.symbols,
        "time": np.full(len(of.symbols), _TIME, "S21"),
        "bid": of.prices,
        "offer": of.prices + spread,
    }


def _orders(order_id: bytes) -> Columns:
    of = instruments(rejecting=True)
    count = len(of.symbols)
    return {
        "side": np.full(count, 1, "u1"),
        "account": np.full(count, 1, "u4"),
        "order_id": np.full(count, order_id, "S6"),
        "symbol": of.symbols,
        "quantity": np.full(count, 10.0),
        "price": of.prices,
        "time": np.full(count, _TIME, "S21"),
    }
