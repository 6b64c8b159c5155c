"""Applications as Python text, for services that are processes: `SUMS.format(name=...)`."""

# The running total of each account.
SUMS = """\
from dataclasses import dataclass
import bettong

@dataclass
class Payment:
    account: str
    amount: float

@dataclass
class Sum:
    amount: float = 0.0

def add(payment: Payment, total: Sum) -> Payment:
    total.amount += payment.amount
    return Payment(payment.account, total.amount)

app = bettong.Application({name!r})
app.source("payments", schema=Payment, key="account").stateful(add, state=Sum).sink("out")
"""
