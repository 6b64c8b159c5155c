r"""Windows, a timer and a time to live, all by event time. `windowed_model.py` says what must come out.

payments --> minutes (tumbling) --> minutes, and what is late for them --> late
         |          \--> key_by start --> all (tumbling) --> all: a second stage, behind the windows of the first
         \--> trends (sliding) --> trends
          \--> sprees (sessions) --> sprees
           \--> activity (a timer, a time to live) --> quiet
"""

from dataclasses import dataclass
from datetime import timedelta

import bettong

SECOND_NS = 1_000_000_000
OUT_OF_ORDER_S = 30
MINUTE_S = 60
TREND_S, TREND_EACH_S = 120, 30
GAP_S = 20
QUIET_S = 30
TTL_S = 75


@dataclass
class Payment:
    """Of an account; `at`: Unix ns."""

    account: str
    shop: int
    amount: int
    at: int


@dataclass
class Minute:
    """What an account has paid in a minute."""

    key: str
    start: int
    payments: int
    amount: int
    shops: int


@dataclass
class MinuteOfAll:
    """What all accounts have paid in a minute, whose start is the key."""

    key: int
    start: int
    accounts: int
    payments: int
    amount: int


@dataclass
class Trend:
    """What an account has paid in two minutes, each half a minute."""

    key: str
    start: int
    payments: int
    highest: int


@dataclass
class Spree:
    """Payments of an account in a row. `digest`: of their amounts, whatever their order."""

    account: str
    start: int
    end: int
    payments: int
    digest: int


@dataclass
class Quiet:
    """An account had no payment for a while. `payments`: since it was quiet before."""

    account: str
    at: int
    payments: int


@dataclass
class Paid:
    """What is kept of a spree: how many payments, and the sum of their squares."""

    payments: int = 0
    squares: int = 0


class Sprees:
    """Counts the payments of a session."""

    def initial(self) -> Paid:
        return Paid()

    def update(self, paid: Paid, payment: Payment) -> Paid:
        return Paid(paid.payments + 1, paid.squares + payment.amount**2)

    def combine(self, left: Paid, right: Paid) -> Paid:
        return Paid(left.payments + right.payments, left.squares + right.squares)

    def output(self, account: str, paid: Paid, window: bettong.Window) -> Spree:
        return Spree(account, window.start, window.end, paid.payments, paid.squares)


@dataclass
class Activity:
    """Of an account. Its time to live ends it after it was quiet, and before it pays again: see `windowed_model`."""

    payments: int = 0
    newest: int = 0
    quiet_at: bettong.Timer = bettong.NEVER


def note(payment: Payment, activity: Activity) -> Quiet | None:
    """Counts, and sets the timer behind the newest payment."""
    activity.payments += 1
    activity.newest = max(activity.newest, payment.at)
    activity.quiet_at = activity.newest + bettong.seconds(QUIET_S)
    return None


def on_quiet(fired: bettong.Fired[str], activity: Activity) -> Quiet:
    """Tells the count, and does not reset it: the time to live does."""
    return Quiet(fired.key, fired.at, activity.payments)


per_minute = bettong.aggregate(
    Minute, payments=bettong.Count(), amount=bettong.Sum("amount"), shops=bettong.Distinct("shop")
)
of_all = bettong.aggregate(
    MinuteOfAll, accounts=bettong.Count(), payments=bettong.Sum("payments"), amount=bettong.Sum("amount")
)
trend = bettong.aggregate(Trend, payments=bettong.Count(), highest=bettong.Max("amount"))

app = bettong.Application("windowed")
payments = app.source(
    "payments",
    schema=Payment,
    key="account",
    event_time="at",
    out_of_order=timedelta(seconds=OUT_OF_ORDER_S),
)
minute = bettong.tumbling(timedelta(seconds=MINUTE_S))
minutes = payments.window(minute, per_minute, name="minutes", late="side")
minutes.sink("per-minute")
minutes.late.sink("late")
minutes.key_by("start", name="starts").window(minute, of_all, name="all").sink("per-minute-of-all")
trends = bettong.sliding(timedelta(seconds=TREND_S), timedelta(seconds=TREND_EACH_S))
payments.window(trends, trend, name="trends").sink("trend")
payments.window(bettong.sessions(timedelta(seconds=GAP_S)), Sprees(), name="sprees").sink("spree")
payments.stateful(
    note,
    state=Activity,
    name="activity",
    timers={"quiet_at": on_quiet},
    ttl=timedelta(seconds=TTL_S),
    ttl_clock="event",
).sink("quiet")
