"""Who waits, as live records name them."""

import pytest

from bettong.queued import (
    NAMED_MAX,
    ClientCredits,
    SubscriberQueue,
    clients_in,
    clients_text,
    subscribers_in,
    subscribers_text,
)


def test_the_clients_with_least_credit_are_named() -> None:
    rich = [ClientCredits(f"orders/feed-{number}", 8 + number, 0, 0.0) for number in range(40)]
    poor = [ClientCredits("orders/ä", 0, 8, 1.5), ClientCredits("orders/b", 0, 8, 9.0)]
    found = clients_in(clients_text([*rich, *poor]))
    assert found == [poor[1], poor[0], *rich[: NAMED_MAX - 2]]
    assert clients_in(clients_text([])) == []


def test_the_subscribers_that_stall_longest_are_named_then_those_furthest_behind() -> None:
    behind = [SubscriberQueue("raw", f"ipv4:10.0.0.1:{number}", 0.0, 0, number) for number in range(40)]
    stalled = SubscriberQueue("raw", "ipv4:10.0.0.2:1", 3.5, 900_000, None)
    found = subscribers_in(subscribers_text([*behind, stalled]))
    assert found == [stalled, *behind[:-NAMED_MAX:-1]]


@pytest.mark.parametrize(
    "row",
    [
        '["a",1,2]',
        '["a",-1,2,3.0]',
        '["a",true,2,3.0]',
        '["a",1,2,"3"]',
        '["a",1,2,1e99]',
        '["a",1,2,NaN]',
        "[5,1,2,3.0]",
        "7",
    ],
)
def test_what_is_no_client_is_refused(row: str) -> None:
    assert clients_in('[["a",1,2,3.0]]') == [ClientCredits("a", 1, 2, 3.0)]
    with pytest.raises(ValueError, match=r"got|values each"):
        clients_in(f"[{row}]")


@pytest.mark.parametrize(
    "text", ["", "x", "{}", "[" * 100_000, '[["raw","a",0.0,0,-1]]', '[["raw","a",-1,0,1]]']
)
def test_what_is_no_list_of_subscribers_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"\w"):
        subscribers_in(text)
