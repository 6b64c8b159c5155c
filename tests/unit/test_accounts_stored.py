"""Accounts in a snapshot, also of a stage that has changed since."""

from __future__ import annotations

from bettong.worker.accounts import StageAccounts
from tests.unit.test_accounts import keyed


def test_accounts_of_another_length_begin_anew_as_those_of_another_stage_do() -> None:
    of = StageAccounts(keyed(has_filter=True).stages[0])
    of.refuse("?", 3)
    stored = of.stored()
    of.load(stored, 7)
    assert any(row.counts.taken for row in of.now().rows)
    del stored.computations[0]
    of.load(stored, 7)
    assert not any(row.counts.taken for row in of.now().rows)
