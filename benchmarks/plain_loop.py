"""The reference: the script that one would write without any framework. One process, one dict, nothing durable."""

import struct
import time
from typing import Any

from benchmarks.workload import Workload, user_module, wire_messages
from examples.market_spread_oracle import by_symbol

_QUOTE = struct.Struct(">IB4s21sdd")
_ORDER = struct.Struct(">IBBI6s4sdd21s")


def messages_per_s(load: Workload) -> float:
    """Messages a second of the loop; its answer is checked."""
    user = user_module()
    messages = wire_messages(load)
    begun = time.process_time()
    results = _loop(messages, user)
    seconds = time.process_time() - begun
    assert by_symbol(b"".join(results)) == load.rejected, "the plain loop is wrong"
    return len(messages) / seconds


def _loop(messages: list[bytes], user: Any) -> list[bytes]:
    quote_type, order_type, market_type = user.Quote, user.Order, user.Market
    on_quote, on_order, pack = user.on_quote, user.on_order, user.pack
    markets: dict[str, Any] = {}
    results: list[bytes] = []
    for message in messages:
        if message[4] == 2:
            _, _, symbol, moment, bid, offer = _QUOTE.unpack(message)
            quote = quote_type(symbol.decode(), moment, bid, offer)
            market = markets.get(quote.symbol)
            if market is None:
                market = markets[quote.symbol] = market_type()
            on_quote(quote, market)
        else:
            _, _, side, account, order_id, symbol, quantity, price, moment = _ORDER.unpack(message)
            order = order_type(side, account, order_id, symbol.decode(), quantity, price, moment)
            market = markets.get(order.symbol)
            if market is None:
                market = markets[order.symbol] = market_type()
            rejected = on_order(order, market)
            if rejected is not None:
                results.append(pack(rejected))
    return results
