"""TLS between clients and servers, by their certificates, over real connections to a small server."""

import asyncio
from pathlib import Path
from typing import Any

import grpc
import pytest
import structlog
from grpc_health.v1 import health_pb2, health_pb2_grpc
from structlog.testing import capture_logs

from bettong.client import Credentials
from bettong.config.reading import read
from bettong.config.receiver import ReceiverSettings
from bettong.errors import SettingsError
from bettong.logs import Logger
from tests.servers.certificates import Authority, Pair
from tests.servers.grpc_echo import ANSWER_S_MAX, PERMISSIONS, healthy, refused, run, secured, served, sources


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("ours"))


@pytest.fixture(scope="module")
def stranger(tmp_path_factory: pytest.TempPathFactory) -> Authority:
    return Authority(tmp_path_factory.mktemp("theirs"))


@pytest.fixture
def server(authority: Authority) -> Pair:
    return authority.issue()


def of(pair: Pair, clients: Path | None = None) -> dict[str, Any]:
    """The settings of a server's certificate."""
    return {"tls_certificate": pair.certificate, "tls_key": pair.key, "tls_clients": clients}


def test_tls_is_spoken_and_plaintext_is_refused(authority: Authority, server: Pair) -> None:
    async def scene() -> None:
        async with served(of(server)) as address:
            for call in (healthy, sources):
                await asyncio.to_thread(call, address, Credentials(authority.ca))
                code, details = await refused(call, address, Credentials())
                assert code is grpc.StatusCode.UNAVAILABLE
                text, is_final = Credentials().complaint(details)
                assert "set BETTONG_CLIENT_CA" in text
                assert not is_final  # a stopping server disconnects, too

    run(scene())


@pytest.mark.parametrize(
    ("host", "expired", "ours", "complaint"),
    [
        ("127.0.0.1", False, False, "no authority of BETTONG_CLIENT_CA has signed its certificate"),
        ("127.0.0.1", True, True, "its certificate has expired: renew it, or correct"),
        ("elsewhere.test", False, True, "its certificate is for another host"),
    ],
)
def test_a_wrong_certificate_is_refused_by_the_client(
    authority: Authority, stranger: Authority, host: str, complaint: str, *, expired: bool, ours: bool
) -> None:
    pair = (authority if ours else stranger).issue(host, name="wrong", expired=expired)
    trusting = Credentials(authority.ca)

    async def scene() -> None:
        async with served(of(pair)) as address:
            code, details = await refused(healthy, address, trusting)
            assert code is grpc.StatusCode.UNAVAILABLE
            text, is_final = trusting.complaint(details)
            assert complaint in text
            assert is_final

    run(scene())


def test_tls_to_a_server_that_speaks_none_is_reported(authority: Authority) -> None:
    async def scene() -> None:
        async with served({}) as address:
            _, details = await refused(healthy, address, Credentials(authority.ca))
            assert Credentials(authority.ca).complaint(details)[0].startswith("it speaks no TLS")

    run(scene())


def test_clients_must_show_a_certificate_of_the_right_authority(
    authority: Authority, stranger: Authority, server: Pair
) -> None:
    right, unknown = authority.issue("me.test", name="client"), stranger.issue("me.test", name="client")
    expired = authority.issue("me.test", name="old", expired=True)

    async def scene() -> None:
        async with served(of(server, clients=authority.ca)) as address:
            shown = Credentials(authority.ca, right.certificate, right.key)
            await asyncio.to_thread(healthy, address, shown)
            for wrong in (
                Credentials(authority.ca),
                Credentials(authority.ca, unknown.certificate, unknown.key),
                Credentials(authority.ca, expired.certificate, expired.key),
                Credentials(),
            ):
                code, details = await refused(healthy, address, wrong)
                assert code is grpc.StatusCode.UNAVAILABLE
                assert "BETTONG_" in wrong.complaint(details)[0]

    run(scene())


def test_new_certificates_count_without_a_restart_and_broken_ones_do_not(
    tmp_path: Path, stranger: Authority
) -> None:
    first, second = Authority(tmp_path / "first"), Authority(tmp_path / "second")
    pair = first.issue()
    new = second.issue()

    async def scene() -> None:
        async with served(of(pair)) as address:
            with Credentials(first.ca).channel(address) as channel:
                stub: Any = health_pb2_grpc.HealthStub(channel)
                await asyncio.to_thread(stub.Check, health_pb2.HealthCheckRequest(), timeout=ANSWER_S_MAX)
                with capture_logs() as lines:
                    pair.certificate.write_bytes(new.certificate.read_bytes())  # its key is not there yet
                    await asyncio.to_thread(healthy, address, Credentials(first.ca))
                    await asyncio.to_thread(healthy, address, Credentials(first.ca))
                assert [line["log_level"] for line in lines] == ["error"]
                assert "key values mismatch" in lines[0]["reason"]
                pair.key.write_bytes(new.key.read_bytes())
                await asyncio.to_thread(healthy, address, Credentials(second.ca))
                await refused(healthy, address, Credentials(first.ca))
                # A connection that is open stays.
                await asyncio.to_thread(stub.Check, health_pb2.HealthCheckRequest(), timeout=ANSWER_S_MAX)

    run(scene())


def test_files_that_are_wrong_are_all_reported_at_the_start(
    tmp_path: Path, server: Pair, authority: Authority
) -> None:
    garbage = tmp_path / "garbage"
    garbage.write_text("garbage")
    locked = tmp_path / "locked.key"
    locked.write_text(server.key.read_text().replace("-----\n", "-----\nProc-Type: 4,ENCRYPTED\n", 1))
    log: Logger = structlog.get_logger()
    for settings, faults in (
        ({**of(server), "tls_certificate": garbage}, ["BETTONG_TLS_CERTIFICATE"]),
        ({**of(server), "tls_key": locked}, ["BETTONG_TLS_KEY"]),
        ({**of(server), "tls_key": authority.issue(name="other").key}, ["key values mismatch"]),
        (
            {**of(server), "tls_key": tmp_path / "none", "tls_clients": garbage, "tokens": garbage},
            ["No such file", "BETTONG_TLS_CLIENTS", "BETTONG_TOKENS", "not TOML"],
        ),
        ({"tokens": tmp_path}, ["BETTONG_TOKENS: cannot read"]),
    ):
        chosen = read(ReceiverSettings, {"application": "x.py", **settings})
        with pytest.raises(SettingsError) as raised:
            secured(chosen, PERMISSIONS, log)
        assert all(fault in str(raised.value) for fault in faults), str(raised.value)


@pytest.mark.parametrize(
    ("settings", "fault"),
    [
        ({"tls_certificate": "a"}, "give both, or none"),
        ({"tls_key": "a"}, "give both, or none"),
        ({"tls_clients": "a"}, "BETTONG_TLS_CLIENTS needs"),
        ({"tokens": "a", "receiver_listen": "0.0.0.0:7200"}, "BETTONG_TOKENS needs BETTONG_TLS_CERTIFICATE"),
    ],
)
def test_settings_that_contradict_each_other_are_reported(settings: dict[str, str], fault: str) -> None:
    with pytest.raises(SettingsError, match=fault) as raised:
        read(ReceiverSettings, {"application": "x.py", "redis": "redis://u:password@h:1/0", **settings})
    assert "password" not in str(raised.value)
