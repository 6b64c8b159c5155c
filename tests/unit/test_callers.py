"""The client of a call: by its token, its certificate, its address."""

import contextvars
from typing import Any

import pytest

from bettong.edges.grpc_server.callers import HOLDER, address, caller


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


class Call:
    """The context of a call with a certificate of these names."""

    def __init__(self, *names: bytes) -> None:
        self._names = names

    def auth_context(self) -> dict[str, tuple[bytes, ...]]:
        return {"x509_common_name": self._names} if self._names else {}

    def peer(self) -> str:
        return "ipv4:10.0.0.7:51234"


def test_a_client_is_its_tokens_holder_else_its_certificates_name_else_its_address() -> None:
    calls: list[Any] = [Call(), Call(b"feed"), Call(b"\xff" + b"x" * 1000)]
    assert [caller(call) for call in calls] == [
        "address 10.0.0.7",
        "certificate feed",
        "certificate \ufffd" + "x" * 127,
    ]
    held = contextvars.copy_context()
    held.run(HOLDER.set, "desk")
    assert held.run(caller, calls[1]) == "token desk"
