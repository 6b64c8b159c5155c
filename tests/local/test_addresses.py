"""Free ports: taken where the kernel gives none to outgoing connections, as far as it leaves room."""

import random
import socket
import subprocess
import sys
from itertools import pairwise

import pytest

from bettong.errors import LocalError
from bettong.local import addresses
from bettong.local.addresses import LOOPBACK, candidates, free_ports, is_free


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("32768\t60999\n", range(15_000, 32_768)),  # Linux' default: below it
        ("1024\t40000\n", range(40_001, 65_536)),  # no room below: above it
        ("1024\t65535\n", range(15_000, 32_768)),  # no room at all: anywhere, and who is unlucky starts again
        ("16000\t65535\n", range(15_000, 16_000)),
        ("15100\t65400\n", range(15_000, 32_768)),  # room too small to choose from
        ("nonsense", range(15_000, 32_768)),
    ],
)
def test_ports_lie_outside_the_range_of_outgoing_connections(text: str, expected: range) -> None:
    assert candidates(text) == expected


def test_free_ports_are_different_and_free() -> None:
    ports = sorted(free_ports(20))
    assert all(first < second for first, second in pairwise(ports))
    assert all(is_free(port) for port in ports)


def test_a_port_that_was_given_is_not_given_again_before_its_server_listens() -> None:
    random.seed(7)
    first = free_ports(20)
    random.seed(7)
    assert not set(first) & set(free_ports(20))


# Prints the port that it is given, and lives until it hears of its end. The port lies below those of all other tests:
# this process may have been given one of theirs long ago, and another one may take it next.
_OTHER = """
import sys
from bettong.local import addresses
addresses.candidates = lambda _: range(10_000, 15_000)
print(addresses.free_ports(1)[0], flush=True)
sys.stdin.read()
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere no process knows of the ports of others")
def test_no_port_is_given_that_another_process_was_given_and_may_start_a_server_at(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", _OTHER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as other:
        assert other.stdin is not None
        assert other.stdout is not None
        port = int(other.stdout.readline())
        monkeypatch.setattr(addresses, "candidates", lambda _: range(port, port + 1))
        with pytest.raises(LocalError, match="no 1 free ports found"):
            free_ports(1)
        other.stdin.close()
        other.wait(30)
    assert free_ports(1) == [port]


def test_a_process_holds_its_newest_ports_alone() -> None:
    for _ in range(3):
        free_ports(50)
    assert len(addresses._PORT_LOCKS) == addresses._PORT_LOCKS_MAX == 100


def test_a_port_with_a_listener_is_not_free() -> None:
    with socket.socket() as taken:
        taken.bind((LOOPBACK, 0))
        taken.listen()
        assert not is_free(taken.getsockname()[1])


def test_more_ports_than_there_can_be_are_an_error() -> None:
    with pytest.raises(LocalError, match="no 1000 free ports found"):
        free_ports(1000)
