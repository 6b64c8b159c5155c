"""Channels of clients, and proxies that are meant for other machines."""

from pathlib import Path

import grpc
import pytest

from bettong.client import Credentials, credentials
from bettong.config.endpoints import is_loopback
from bettong.errors import SettingsError
from tests.servers.grpc_service import serving


@pytest.mark.parametrize("target", ["127.0.0.1:7100", "127.8.9.1:1", "localhost:7100", "[::1]:7100"])
def test_this_machine_is_told_from_others(target: str) -> None:
    assert is_loopback(target)


@pytest.mark.parametrize(
    "target", ["10.0.0.1:7100", "sender:7100", "[2001:db8::1]:7100", "dns:///sender:1", ""]
)
def test_others_are_told_from_this_machine(target: str) -> None:
    assert not is_loopback(target)


def test_a_proxy_is_left_out_for_this_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "grpc_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    for name in ("no_proxy", "NO_PROXY", "no_grpc_proxy"):
        monkeypatch.delenv(name, raising=False)
    with serving(lambda _: None) as address, Credentials().channel(address) as here:
        grpc.channel_ready_future(here).result(timeout=10)


def test_no_option_of_a_channel_is_given_twice() -> None:
    names = [name for name, _ in credentials._OPTIONS]
    assert sorted(names) == sorted(set(names))


def test_a_token_and_a_file_of_one_are_not_both_taken() -> None:
    with pytest.raises(SettingsError) as caught:
        Credentials(token="secret", token_file=Path("feed.token"))  # noqa: S106 - of this test
    assert str(caught.value) == "Credentials has a token and a token_file (feed.token); give one of them"
