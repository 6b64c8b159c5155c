"""A suite asks its services by TLS where they have a certificate, and only there."""

import asyncio
from pathlib import Path

import pytest

from bettong.errors import SettingsError
from bettong.local.checks import check_options
from bettong.local.options import SuiteOptions
from bettong.local.services import service
from bettong.services import SENDER
from tests.servers.certificates import Authority
from tests.servers.grpc_echo import served

CERTIFICATE, CLIENT_CA = "BETTONG_TLS_CERTIFICATE", "BETTONG_CLIENT_CA"


@pytest.fixture
def authority(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Authority:
    """The authority of clients' environment, as it is for those of a cluster."""
    made = Authority(tmp_path / "authority")
    monkeypatch.setenv(CLIENT_CA, str(made.ca))
    monkeypatch.delenv(CERTIFICATE, raising=False)
    return made


def sender_answers(folder: Path, own: dict[str, str]) -> bool:
    """Whether a suite takes a server with these settings for a sender that answers."""

    async def asked() -> bool:
        async with served(own) as address:
            settings = {SENDER.listen_setting: address, "sender_marks": str(folder), **own}
            sender = service(SENDER, settings, folder, {}, application="app")
            found = False
            for _ in range(10):  # it is asked again and again where it counts, too: the machine may be busy
                found = found or await asyncio.to_thread(sender._answers)
            return found

    return asyncio.run(asked())


def test_a_service_without_a_certificate_answers_whatever_clients_trust(
    authority: Authority, tmp_path: Path
) -> None:
    assert authority.ca.exists()
    assert sender_answers(tmp_path, {})


def test_a_service_with_a_certificate_answers_by_tls(authority: Authority, tmp_path: Path) -> None:
    pair = authority.issue()
    assert sender_answers(tmp_path, {"tls_certificate": str(pair.certificate), "tls_key": str(pair.key)})


def test_a_certificate_without_an_authority_of_clients_is_refused(
    authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(CERTIFICATE, str(authority.issue().certificate))
    options = SuiteOptions(application="app.py")
    check_options(options)
    monkeypatch.delenv(CLIENT_CA)
    with pytest.raises(SettingsError, match=f"{CERTIFICATE} is set, and {CLIENT_CA} is not"):
        check_options(options)
    monkeypatch.delenv(CERTIFICATE)
    check_options(options)
    in_options = options.model_copy(update={"settings": {"tls_certificate": "tls.pem"}})
    with pytest.raises(SettingsError, match=CLIENT_CA):
        check_options(in_options)
