"""What has come in part, told by what the system received and what was delivered."""

from bettong_sender.receiving import Receiving

MESSAGE = 5_000_000
A, B, C = "ipv4:10.0.0.1:1", "ipv4:10.0.0.2:1", "ipv4:10.0.0.3:1"


def receiving(*peers: str) -> Receiving:
    found = Receiving(bytes_max=12_000_000, message_bytes_max=MESSAGE)
    for peer in peers:
        found.opened(peer)
    return found


def test_few_sessions_need_no_check() -> None:
    one = receiving(A, B)
    assert not one.crowded.is_set()
    one.opened(C)
    assert one.crowded.is_set()
    one.closed(A)
    assert not one.crowded.is_set()


def test_what_was_delivered_is_not_held() -> None:
    one = receiving(A, B, C)
    received = dict.fromkeys((A, B, C), 0)
    for _ in range(100):
        for peer in received:
            received[peer] += 4_000_000 + 20_000
            one.delivered(peer, 4_000_000)
        assert one.connections_to_close(received) == {}


def test_those_that_have_sent_most_in_part_go_first_until_the_rest_is_within_the_bound() -> None:
    one = receiving(A, A, B, C)
    found = one.connections_to_close({A: 8_000_000, B: 4_000_000, C: 4_000_000})
    assert list(found) == [A]
    assert 7_900_000 < found[A] <= 8_000_000


def test_small_messages_bank_nothing_against_a_half_sent_one() -> None:
    one = receiving(A, A, A, B)
    received = 0
    for _ in range(50):
        received += 2000 * 40
        for _ in range(2000):
            one.delivered(A, 20)
        assert one.connections_to_close({A: received, B: 0}) == {}
    assert list(one.connections_to_close({A: received + 13_000_000, B: 0})) == [A]


def test_a_session_that_ends_gives_back_what_it_had_sent_in_part() -> None:
    one = receiving(A, B, C)
    received = {A: 4_900_000, B: 4_900_000, C: 1000}
    assert one.connections_to_close(received) == {}
    one.closed(A)
    one.opened(A)
    assert one.connections_to_close(received | {A: received[A] + 1000, C: 4_900_000}) == {}


def test_a_connection_that_is_gone_is_forgotten_and_what_the_system_does_not_tell_is_nothing() -> None:
    one = receiving(A, B, C)
    assert one.connections_to_close({}) == {}
    for peer in (A, B, C):
        one.closed(peer)
    one.connections_to_close({})
    assert not one._connections
