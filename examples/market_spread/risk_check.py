"""Market Spread: a pre-trade risk check, the reference application.

Quotes keep the spread of each symbol; an order on a symbol whose spread is too wide is rejected. The messages are
those of another system, down to the byte: wire.py beside this file has them.

    bettong run examples/market_spread/risk_check.py
    bettong send nbbo quotes.msg        (framed binary: u32 length, then the message)
    bettong send orders orders.msg
    bettong tail rejected
"""

from dataclasses import dataclass

import bettong
from wire import ORDER_LAYOUT, QUOTE_LAYOUT, Order, Quote, Rejected, pack, unix_ns


@dataclass(slots=True)
class Market:
    """What is kept of a symbol. Without a quote, it rejects."""

    bid: float = 0.0
    offer: float = 0.0
    reject: bool = True


@bettong.compiled
def on_quote(quote: Quote, market: Market) -> None:
    """Keeps the quote, and whether its spread is too wide."""
    spread = quote.offer - quote.bid
    middle = (quote.bid + quote.offer) / 2
    market.bid = quote.bid
    market.offer = quote.offer
    market.reject = spread >= 0.05 or spread / middle >= 0.05


@bettong.compiled
def on_order(order: Order, market: Market) -> Rejected | None:
    """Rejects the order when the symbol does."""
    if not market.reject:
        return None
    return Rejected(
        side=order.side,
        account=order.account,
        order_id=order.order_id,
        symbol=order.symbol,
        quantity=order.quantity,
        price=order.price,
        bid=market.bid,
        offer=market.offer,
        time_ns=unix_ns(order.time),
    )


app = bettong.Application("market-spread")
quotes = app.source("nbbo", schema=Quote, key="symbol", decoder=QUOTE_LAYOUT)
orders = app.source("orders", schema=Order, key="symbol", decoder=ORDER_LAYOUT)
(
    quotes.merge(orders)
    .stateful({quotes: on_quote, orders: on_order}, state=Market, name="check")
    .sink("rejected", encoder=pack)
)
