"""An application of two stages with results and states of several sorts, for tests of `bettong.spark`."""

PROGRAM = """
from dataclasses import dataclass, field
from datetime import UTC, datetime
import bettong


@dataclass
class Payment:
    account: str
    shop: bettong.u16
    amount: float
    at: datetime


@dataclass
class Total:
    account: str
    total: float
    last: datetime | None


@dataclass
class Account:
    total: float = 0.0
    last: datetime | None = None


@dataclass
class Shop:
    shop: int = 0
    accounts: set[str] = field(default_factory=set)


@dataclass
class Visited:
    shop: bettong.u16
    accounts: list[str]
    is_new: bool


def add(payment: Payment, account: Account) -> Total:
    if payment.amount == 13:
        raise ValueError("thirteen")
    account.total += payment.amount
    before, account.last = account.last, payment.at
    return Total(payment.account, account.total, before)


def visit(payment: Payment, shop: Shop) -> Visited:
    shop.shop = payment.shop
    is_new = payment.account not in shop.accounts
    if is_new:
        shop.accounts.add(payment.account)
    return Visited(payment.shop, sorted(shop.accounts), is_new)


def line(total: Total) -> bytes:
    return f"{total.account} {total.total}".encode()


app = bettong.Application({name!r})
payments = app.source("payments", schema=Payment, key="account")
totals = payments.stateful(add, state=Account)
totals.sink("totals")
totals.sink("lines", encoder=line)
visits = payments.key_by("shop").stateful(visit, state=Shop)
visits.sink("visits")
totals.merge(visits).sink("all")
"""
