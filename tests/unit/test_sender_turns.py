"""Whose work is next."""

from bettong_sender.turns import Turns


def drained(turns: Turns[str]) -> list[str]:
    found = []
    while (work := turns.take()) is not None:
        found.append(work)
    return found


def test_clients_take_turns_and_so_do_the_sessions_of_each() -> None:
    turns: Turns[str] = Turns()
    for client, session, work in (
        ("A", 1, "A1a"),
        ("A", 1, "A1b"),
        ("A", 2, "A2a"),
        ("A", 2, "A2b"),
        ("B", 3, "B3a"),
        ("B", 3, "B3b"),
    ):
        turns.put(client, session, work)
    assert drained(turns) == ["A1a", "B3a", "A2a", "B3b", "A1b", "A2b"]


def test_who_comes_later_waits_for_one_piece_of_each_other_client() -> None:
    turns: Turns[str] = Turns()
    for session in range(100):
        turns.put("many", session, "many")
    turns.put("one", 0, "one")
    assert [turns.take() for _ in range(2)] == ["many", "one"]
    turns.put("one", 0, "again")
    assert [turns.take() for _ in range(2)] == ["many", "again"]


def test_nothing_is_kept_of_who_waits_for_nothing() -> None:
    turns: Turns[str] = Turns()
    turns.put("A", 1, "work")
    assert drained(turns) == ["work"]
    assert turns.take() is None
    assert not turns._clients
