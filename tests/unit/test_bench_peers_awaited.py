"""What a race of `python -m benchmarks.peers` waits for: a number of results, or the newest ones."""

from benchmarks.peers.awaited import NewestResults, ResultCount
from benchmarks.peers.nexmark.queries import QUERIES
from benchmarks.peers.workloads import WORKLOADS


def split(result: bytes) -> tuple[bytes, bytes]:
    key, _, content = result.partition(b" ")
    return key, content


def test_a_number_of_results_is_awaited() -> None:
    awaited = ResultCount(3)
    awaited.note([b"a", b"b"])
    assert awaited.left == 1
    awaited.note([b"a", b"b"])
    assert awaited.left == 0


def test_the_newest_result_of_each_key_counts() -> None:
    awaited = NewestResults({b"a": b"2", b"b": b"5"}, split)
    awaited.note([b"a 1", b"b 5"])
    assert awaited.left == 1
    awaited.note([b"a 2"])
    assert awaited.left == 0
    awaited.note([b"b 6", b"c 1"])
    assert awaited.left == 2, "a right one was replaced, and nobody expected c"
    awaited.note([b"b 5"])
    assert awaited.left == 1


def test_what_deletes_a_key_is_left_out() -> None:
    awaited = NewestResults({b"a": b"2"}, split)
    awaited.note([b"", b"a 2", b""])
    assert awaited.left == 0


def test_results_are_updates_where_a_query_has_a_key_for_them() -> None:
    updates = {name for name, query in QUERIES.items() if query.newest_by}
    assert updates == {"q4", "q9", "q18", "q19"}
    of = WORKLOADS["nexmark-q19"].load(2000)
    assert isinstance(of.awaited, NewestResults)
    assert of.awaited_at_start.left == of.opening_results == 400
    assert isinstance(WORKLOADS["nexmark-q0"].load(2000).awaited, ResultCount)
    assert QUERIES["q19"].update_key([7, 1, 100, 5, 3]) == b"7,3"
    assert QUERIES["q0"].update_key([7]) is None
