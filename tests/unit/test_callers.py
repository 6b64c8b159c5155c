"""Whose call it is, by its address."""

import pytest

from bettong.edges.grpc_server.callers import address


@pytest.mark.parametrize(
    ("peer", "expected"),
    [
        ("ipv4:10.0.0.7:51234", "address 10.0.0.7"),
        ("ipv4:10.0.0.7:51235", "address 10.0.0.7"),
        ("ipv6:%5B2001:db8::7%5D:51234", "address 2001:db8::7"),
        ("ipv6:[::ffff:10.0.0.7]:51234", "address 10.0.0.7"),
        ("ipv4:127.0.0.1:1", "address loopback"),
        ("ipv4:127.9.9.9:2", "address loopback"),
        ("ipv6:%5B::1%5D:3", "address loopback"),
        ("unix:/tmp/socket", "address loopback"),
        ("ipv4:" + "x" * 1000 + ":1", "address " + "x" * 128),
    ],
)
def test_a_client_is_its_address_without_the_port_and_loopback_is_one(peer: str, expected: str) -> None:
    assert address(peer) == expected
