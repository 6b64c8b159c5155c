"""A sink of one's own: payments in a SQLite file, each exactly once. The sink is ledger_sink.py beside this file.

echo '{"ledger": {"path": "ledger.db"}}' > connections.json
BETTONG_CONNECTIONS=connections.json bettong run examples/sqlite_ledger/payments.py
echo '{"account": "ann", "cents": 1250}' > payments.jsonl; bettong send payments payments.jsonl
sqlite3 ledger.db 'SELECT message FROM ledger'
"""

from dataclasses import dataclass

import bettong
from ledger_sink import open_ledger


@dataclass(slots=True)
class Payment:
    """Money that comes to an account."""

    account: str
    cents: int


def is_payment(payment: Payment) -> bool:
    """Leaves out what moves nothing."""
    return payment.cents != 0


app = bettong.Application("payments-ledger")
(
    app.source("payments", schema=Payment, key="account")
    .filter(is_payment)
    .sink("ledger", to=bettong.TwoPhase(open_ledger))
)
