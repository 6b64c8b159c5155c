"""Three kinds of alerts about one stream of transactions: of one message, of a state, and of a minute.

bettong up examples/alerts.py
bettong send transactions examples/data/alerts/transactions.jsonl
bettong tail large          (or overdrawn, or busy)
"""

from dataclasses import dataclass
from datetime import timedelta

import bettong

LARGE_CENTS = 100_000
BUSY_CENTS = 50_000


@dataclass
class Transaction:
    """What was paid into an account, or, below zero, out of it; `at`: Unix ns."""

    account: str
    cents: int
    at: int


@dataclass
class Overdrawn:
    """An account fell below zero with the transaction of that time."""

    account: str
    balance: int
    at: int


@dataclass
class Minute:
    """What left an account in a minute. `key`: the account; `start`: of the minute, Unix ns."""

    key: str
    start: int
    payments: int
    cents: int


@dataclass
class Account:
    """What is kept of an account. `alerted`: that it is below zero is known, until it has recovered."""

    balance: int = 0
    alerted: bool = False


def is_large(transaction: Transaction) -> bool:
    """Needs nothing but the message."""
    return abs(transaction.cents) >= LARGE_CENTS


def watch(transaction: Transaction, account: Account) -> Overdrawn | None:
    """Needs the balance so far; one alert, however many transactions follow below zero."""
    account.balance += transaction.cents
    alert = account.balance < 0 and not account.alerted
    account.alerted = account.balance < 0
    return Overdrawn(transaction.account, account.balance, transaction.at) if alert else None


app = bettong.Application("alerts")
transactions = app.source("transactions", schema=Transaction, key="account", event_time="at")
transactions.filter(is_large).sink("large")
transactions.stateful(watch, state=Account).sink("overdrawn")

payments = transactions.filter(lambda transaction: transaction.cents < 0, name="payments")
spent = bettong.aggregate(Minute, payments=bettong.Count(), cents=bettong.Sum(lambda each: -each.cents))
minutes = payments.window(bettong.tumbling(timedelta(minutes=1)), spent, name="minutes")
minutes.filter(lambda minute: minute.cents > BUSY_CENTS, name="is-busy").sink("busy")
