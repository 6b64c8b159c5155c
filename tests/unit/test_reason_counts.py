"""Dead letters counted by computation and reason."""

from dataclasses import replace

from bettong.cli.top.tables import REASONS
from bettong.inspection.reason_counts import OTHER_REASONS, REASONS_MAX, ReasonCounts, ReasonKey
from tests.samples.watched_deployment import BEGUN_S, dead_letters


def test_each_reason_of_a_computation_is_counted_with_its_newest() -> None:
    found = dead_letters({("check", "ValueError:\n no price"): 3, ("check", "late"): 1, ("sum", "late"): 2})
    assert {key: row.count for key, row in found.rows.items()} == {
        ReasonKey("check", "ValueError: no price"): 3,
        ReasonKey("check", "late"): 1,
        ReasonKey("sum", "late"): 2,
    }
    row = found.rows[ReasonKey("check", "late")]
    assert (row.last_id, row.last_ns, row.last_origin) == (
        "0.1.0",
        int((BEGUN_S - 60) * 1e9),
        "orders/feed-7",
    )
    assert found.total == 6


def test_reasons_that_all_differ_are_bounded_and_none_is_lost() -> None:
    found = dead_letters(
        {(f"computation-{number}", f"reason {number}"): 1 for number in range(5 * REASONS_MAX)}
    )
    assert len(found.rows) <= 2 * REASONS_MAX + 1
    assert found.total == 5 * REASONS_MAX
    assert any(key.reason == OTHER_REASONS for key in found.rows)


def test_none_are_none() -> None:
    assert ReasonCounts().total == 0


def test_top_names_a_dead_letter_to_show_or_the_list_where_that_may_be_a_copy() -> None:
    (row,) = dead_letters({("check", "late"): 1}).rows.values()
    _, named, command = REASONS.detail(row)
    assert named.startswith("the last one: 0.0.0, of orders/feed-7, taken in ")
    assert command == "bettong dead-letters show APP.py 0.0.0"
    _, named, command = REASONS.detail(replace(row, last_id=""))
    assert named.startswith("the last one: of orders/feed-7, taken in ")
    assert command == "bettong dead-letters list APP.py --each --computation check"
