"""Bytes of partly received messages, by the bytes that the system received and those delivered."""

from collections.abc import Mapping

from bettong.edges.grpc_server.receiving import Bound, Excess, Receiving

MESSAGE = 5_000_000
ALL, EACH = "BOUND_OF_ALL", "BOUND_OF_A_CONNECTION"
A, B, C = "ipv4:10.0.0.1:1", "ipv4:10.0.0.2:1", "ipv4:10.0.0.3:1"


def receiving(*peers: str, connection_bytes_max: int = 12_000_000) -> Receiving:
    found = Receiving(
        of_all=Bound(12_000_000, ALL),
        of_connection=Bound(connection_bytes_max, EACH),
        message_bytes_max=MESSAGE,
    )
    for peer in peers:
        found.opened(peer)
    return found


def look(one: Receiving, received: Mapping[str, int]) -> dict[str, Excess]:
    """The connections to close, with no delivery meanwhile."""
    return one.connections_to_close(lambda: received)


def test_few_sessions_need_no_polling() -> None:
    one = receiving(A, B)
    assert not one.may_exceed_bounds.is_set()
    one.opened(C)
    assert one.may_exceed_bounds.is_set()
    one.closed(A)
    assert not one.may_exceed_bounds.is_set()


def test_delivered_bytes_do_not_count() -> None:
    one = receiving(A, B, C)
    received = dict.fromkeys((A, B, C), 0)
    for _ in range(100):
        for peer in received:
            received[peer] += 4_000_000 + 20_000
            one.delivered(peer, 4_000_000)
        assert look(one, received) == {}


def test_the_connections_with_most_incomplete_bytes_are_closed_until_the_rest_is_within_the_bound() -> None:
    one = receiving(A, A, B, C)
    found = look(one, {A: 8_000_000, B: 4_000_000, C: 4_000_000})
    assert list(found) == [A]
    assert 7_900_000 < found[A].held <= 8_000_000
    assert found[A].bound == ALL


def test_small_messages_do_not_offset_an_incomplete_one() -> None:
    one = receiving(A, A, A, B)
    received = 0
    for _ in range(50):
        received += 2000 * 40
        for _ in range(2000):
            one.delivered(A, 20)
        assert look(one, {A: received, B: 0}) == {}
    assert list(look(one, {A: received + 13_000_000, B: 0})) == [A]


def test_messages_that_wait_for_the_buffer_count_with_incomplete_ones() -> None:
    one = receiving(A, B, C)
    received = {A: 4_000_000, B: 4_000_000, C: 4_500_000}
    one.delivered(A, 4_000_000)
    one.delivered(C, 4_400_000)
    assert look(one, received) == {}
    with one.waiting(A, 4_000_000):
        assert look(one, received) == {}
        with one.waiting(C, 4_400_000):
            assert list(look(one, received)) == [C]
        assert look(one, received) == {}
    assert look(one, received) == {}


def test_the_incomplete_message_of_an_ended_session_does_not_count() -> None:
    one = receiving(A, B, C)
    received = {A: 4_900_000, B: 4_900_000, C: 1000}
    assert look(one, received) == {}
    one.closed(A)
    one.opened(A)
    assert look(one, received | {A: received[A] + 1000, C: 4_900_000}) == {}


def test_a_closed_connection_is_forgotten_and_an_uncounted_one_holds_nothing() -> None:
    one = receiving(A, B, C)
    assert look(one, {}) == {}
    for peer in (A, B, C):
        one.closed(peer)
    look(one, {})
    assert not one._connections


def test_a_connection_is_closed_at_its_own_bound_while_the_total_is_within_the_other() -> None:
    one = receiving(A, A, A, B, connection_bytes_max=10_500_000)
    received = {A: 10_400_000, B: 1_000_000}
    assert look(one, received) == {}
    assert look(one, received | {A: 10_900_000}) == {A: Excess(10_900_000 - 2 * 256, EACH)}


def test_waiting_messages_count_for_the_bound_of_their_connection() -> None:
    one = receiving(A, A, A, connection_bytes_max=10_500_000)
    one.delivered(A, 4_000_000)
    received = {A: 4_000_000 + 7_000_000}
    with one.waiting(A, 4_000_000):
        assert list(look(one, received)) == [A]
    assert look(one, received) == {}


def test_a_connection_may_hold_two_of_the_largest_messages_whatever_the_setting() -> None:
    one = receiving(A, connection_bytes_max=1_000_000)
    one.delivered(A, MESSAGE)
    with one.waiting(A, MESSAGE):
        assert look(one, {A: 3 * MESSAGE}) == {}
    several = receiving(A, A, A, connection_bytes_max=1_000_000)
    assert list(look(several, {A: 3 * MESSAGE})) == [A]


def test_sessions_that_together_could_exceed_the_bound_of_their_connection_are_polled() -> None:
    one = Receiving(
        of_all=Bound(100_000_000, ALL), of_connection=Bound(12_000_000, EACH), message_bytes_max=MESSAGE
    )
    for peer in (A, B, A, B):
        one.opened(peer)
        assert not one.may_exceed_bounds.is_set()
    one.opened(A)
    assert one.may_exceed_bounds.is_set()
    one.closed(B)
    assert one.may_exceed_bounds.is_set()
    one.closed(A)
    assert not one.may_exceed_bounds.is_set()


def test_messages_delivered_during_a_poll_are_never_counted_as_incomplete() -> None:
    one = receiving(A, B, C)
    received = dict.fromkeys((A, B, C), 0)

    def ask() -> dict[str, int]:
        found = dict(received)
        for peer in received:
            received[peer] += 4_000_000 + 15_000
            one.delivered(peer, 4_000_000)
        return found

    for _ in range(100):
        assert one.connections_to_close(ask) == {}
    assert look(one, received | {A: received[A] + 4_900_000}) == {}


def test_messages_received_and_delivered_during_a_poll_are_not_incomplete() -> None:
    one = receiving(A, B, C)
    received = dict.fromkeys((A, B, C), 0)

    def ask() -> dict[str, int]:
        for peer in received:
            for _ in range(3):
                received[peer] += 4_000_000 + 15_000
                one.delivered(peer, 4_000_000)
        return dict(received)

    for _ in range(100):
        assert one.connections_to_close(ask) == {}
