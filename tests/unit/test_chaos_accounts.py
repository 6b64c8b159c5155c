"""A chaos run's check of accounts: counts that do not add up, or differ from the undisturbed run."""

from __future__ import annotations

from bettong.chaos.accounts import FinalAccounts, broken_accounts
from bettong.identifiers import PartitionId
from bettong.testing import AppSession
from bettong.worker.balance import PartitionAccounts, balance
from tests.samples.accounts import Order, chain, every_kind


def accounts_of(values: list[int]) -> PartitionAccounts:
    session = AppSession(chain("python"))
    session.step(("orders", [Order(1, 1, value) for value in values]))
    (partition,) = session._processor.partitions.values()
    return partition.worker.accounts.now()


def final(accounts: PartitionAccounts) -> FinalAccounts:
    return FinalAccounts(tuple(balance({PartitionId("orders", 0): accounts}, is_at_rest=True)))


def test_equal_runs_are_right() -> None:
    assert broken_accounts(final(accounts_of([1, 2, 13])), final(accounts_of([1, 2, 13]))) == []
    assert broken_accounts(final(accounts_of([1, 2, 13])), None) == []


def test_a_message_that_only_one_run_has_is_named_at_each_place() -> None:
    broken = broken_accounts(final(accounts_of([1, 2])), final(accounts_of([1, 2, 13])))
    assert [line.removesuffix(" as in the undisturbed run") for line in broken] == [
        "accounts: orders, input orders: {'taken': 2, 'given': 2}, not {'taken': 3, 'given': 3}",
        "accounts: orders, positive: {'taken': 2, 'given': 2}, not {'taken': 3, 'given': 2, 'dead_letters': 1}",
    ]


def test_what_does_not_add_up_is_broken_whatever_the_undisturbed_run_was() -> None:
    whole = accounts_of([1, 2])
    rows = tuple(
        row._replace(counts=row.counts._replace(taken=1)) if row.name == "double" else row
        for row in whole.rows
    )
    for straight in (None, FinalAccounts(unknown="Redis is away")):
        assert broken_accounts(final(PartitionAccounts(0, rows)), straight) == [
            "accounts: orders, partition 0: double took 1 of the 2 messages that positive gave",
            "accounts: orders, partition 0: double took 1 messages, and accounts for 2",
        ]


def test_accounts_that_are_not_known_are_not_compared() -> None:
    assert broken_accounts(FinalAccounts(unknown="no answer"), final(accounts_of([1]))) == []


def test_what_local_combines_hangs_on_frames_and_is_not_compared() -> None:
    found = []
    for frames in ([[2, 2]], [[2], [2]]):
        session = AppSession(every_kind())
        for values in frames:
            session.step(("orders", [Order(1, 1, value) for value in values]))
        found.append(FinalAccounts(tuple(session.outcome.accounts)))
    assert [each.counts for each in found[0].found] != [each.counts for each in found[1].found]
    assert broken_accounts(*found) == []
