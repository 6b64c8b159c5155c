"""Differences of accounts that a processor reports: within partitions at once, between stages where nothing moves."""

from __future__ import annotations

import pytest

from bettong.edges.account_differences import REST_S, AccountWatch, Partitions
from bettong.identifiers import PartitionId
from bettong.worker.balance import AccountKind, AccountRow, PartitionAccounts, RowCounts

AT_REST = {"lag": "0"}


class Clock:
    """A clock that tests set."""

    def __init__(self) -> None:
        self.now_s = 100.0

    def __call__(self) -> float:
        return self.now_s


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def watch(clock: Clock) -> AccountWatch:
    return AccountWatch(clock)


def stages(*, used: int = 5, sent: int = 5, arrived: int = 5, offset: int = 5) -> Partitions:
    """Stage a takes 5 messages and sends to b."""
    first = PartitionAccounts(
        0,
        (
            AccountRow(AccountKind.INPUT, "a", (), "", RowCounts(taken=5, given=5)),
            AccountRow(AccountKind.EACH, "one", ("a",), "", RowCounts(taken=5, given=used)),
            AccountRow(AccountKind.OUTPUT, "b", ("one",), "", RowCounts(taken=sent, given=sent)),
        ),
    )
    second = PartitionAccounts(
        0, (AccountRow(AccountKind.INPUT, "b", (), "", RowCounts(taken=arrived, given=arrived)),)
    )
    return {
        PartitionId("a", 0): {"offset": f"{offset}", "accounts": first.text()},
        PartitionId("b", 0): {"offset": "5", "accounts": second.text()},
    }


def test_accounts_that_add_up_are_0_for_each_stage(watch: AccountWatch) -> None:
    assert watch.differences(AT_REST, stages()) == {"a": 0, "b": 0}


def test_what_does_not_add_up_within_a_partition_is_told_at_once(watch: AccountWatch) -> None:
    assert watch.differences({}, stages(used=4, sent=4, arrived=4)) == {"a": 1, "b": 0}


def test_what_is_missing_between_stages_is_told_once_nothing_has_moved_for_a_while(
    watch: AccountWatch, clock: Clock
) -> None:
    missing = stages(arrived=3)
    assert watch.differences(AT_REST, missing) == {"a": 0, "b": 0}
    clock.now_s += REST_S
    assert watch.differences({"lag": "2"}, missing) == {"a": 0, "b": 0}, "they may be in the log"
    assert watch.differences({}, missing) == {"a": 0, "b": 0}, "nobody knows what is in the log"
    assert watch.differences(AT_REST, missing) == {"a": 0, "b": 1}
    moved = stages(arrived=3, offset=6)
    assert watch.differences(AT_REST, moved) == {"a": 0, "b": 0}
    clock.now_s += REST_S - 0.1
    assert watch.differences(AT_REST, moved) == {"a": 0, "b": 0}


def test_partitions_without_accounts_may_have_what_is_missing(watch: AccountWatch, clock: Clock) -> None:
    partial = {**stages(arrived=3), PartitionId("b", 1): {"offset": "4"}}
    watch.differences(AT_REST, partial)
    clock.now_s += REST_S
    assert watch.differences(AT_REST, partial) == {"a": 0, "b": 0}


@pytest.mark.parametrize("text", ["", "[]", "7", '[0,["output","x",["nobody"],"",[1]]]'])
def test_what_another_version_wrote_says_nothing_and_ends_no_scrape(watch: AccountWatch, text: str) -> None:
    found = watch.differences(AT_REST, {PartitionId("a", 0): {"offset": "5", "accounts": text}})
    assert not any(found.values())
