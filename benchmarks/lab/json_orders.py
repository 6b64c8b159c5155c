"""Orders as JSON of ten fields, one per record, from topic to topic: each with its account's totals so far."""

from dataclasses import dataclass

import bettong


@dataclass(slots=True)
class JsonOrder:
    """An order of a shop."""

    order_id: int
    account: int
    customer: str
    country: str
    product: str
    quantity: int
    price: float
    discount: float
    express: bool
    placed_at: str


@dataclass(slots=True)
class AccountTotal:
    """What an account has ordered so far."""

    orders: int = 0
    amount: float = 0.0


@dataclass(slots=True)
class TotalledOrder:
    """An order, with the totals of its account up to it."""

    order_id: int
    account: int
    customer: str
    country: str
    product: str
    quantity: int
    price: float
    discount: float
    orders: int
    amount: float


def add(order: JsonOrder, total: AccountTotal) -> TotalledOrder:
    """Adds an order to its account's totals."""
    total.orders += 1
    total.amount += order.quantity * order.price * (1 - order.discount)
    return TotalledOrder(
        order_id=order.order_id,
        account=order.account,
        customer=order.customer,
        country=order.country,
        product=order.product,
        quantity=order.quantity,
        price=order.price,
        discount=order.discount,
        orders=total.orders,
        amount=total.amount,
    )


app = bettong.Application("json-orders")
orders = app.source(
    "orders", schema=JsonOrder, key="account", format="json", from_=bettong.KafkaTopic("orders")
)
orders.stateful(add, state=AccountTotal).sink("totals", to=bettong.KafkaTopic("totals"))
