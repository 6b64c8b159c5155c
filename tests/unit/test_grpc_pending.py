"""How many incomplete requests there may be, and which connection is closed when there are too many."""

from contextlib import ExitStack

from bettong.edges.grpc_server.pending import REQUESTS_MAX, REQUESTS_PER_CONNECTION_MAX, PendingRequests


def begun(one: PendingRequests, stack: ExitStack, peer: str, count: int = 1) -> None:
    for _ in range(count):
        stack.enter_context(one.pending(peer))


def test_a_connection_may_have_so_many_incomplete_requests_and_no_more() -> None:
    one = PendingRequests()
    with ExitStack() as stack:
        begun(one, stack, "a", REQUESTS_PER_CONNECTION_MAX - 1)
        assert not one.is_full_for("a")
        begun(one, stack, "a")
        assert one.is_full_for("a")
        assert not one.is_full_for("b")
        assert one.peer_to_close() is None
    assert not one.is_full_for("a")


def test_the_first_request_of_a_connection_is_admitted_and_the_largest_connection_closed() -> None:
    one = PendingRequests()
    with ExitStack() as stack:
        begun(one, stack, "few", REQUESTS_MAX - REQUESTS_PER_CONNECTION_MAX)
        begun(one, stack, "many", REQUESTS_PER_CONNECTION_MAX)
        begun(one, stack, "one")
        assert one.is_full_for("one")
        assert not one.is_full_for("another")
        assert one.peer_to_close() in ("few", "many")
        assert one.peer_to_close() is None


def test_of_equal_connections_the_oldest_is_closed() -> None:
    one = PendingRequests()
    with ExitStack() as stack:
        for number in range(REQUESTS_MAX + 1):
            begun(one, stack, f"peer-{number}")
        assert one.peer_to_close() == "peer-0"
        begun(one, stack, "peer-0")
        assert one.peer_to_close() == "peer-1"
