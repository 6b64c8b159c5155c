"""When certificates expire, parsed from their bytes, compared with the library that made them."""

from __future__ import annotations

import base64
from datetime import UTC, datetime
from pathlib import Path

import pytest
import structlog
import trustme
from hypothesis import given
from hypothesis import strategies as st

from bettong.edges.grpc_server.certificate_end import chain_end_s
from bettong.edges.grpc_server.certificates import ServerCertificate
from tests.servers.certificates import Authority

AUTHORITY = trustme.CA()
BEGIN = datetime(1960, 1, 1, tzinfo=UTC)


def certificate(end: datetime) -> bytes:
    issued = AUTHORITY.issue_cert("localhost", not_before=BEGIN, not_after=end)
    return issued.cert_chain_pems[0].bytes()


@given(st.datetimes(datetime(1961, 1, 1), datetime(2400, 1, 1), timezones=st.just(UTC)))  # noqa: DTZ001 - see timezones
def test_an_end_is_read_in_both_of_its_forms(end: datetime) -> None:
    assert chain_end_s(certificate(end)) == end.replace(microsecond=0).timestamp()


def test_of_a_chain_the_first_end_counts() -> None:
    sooner, later = datetime(2031, 5, 1, tzinfo=UTC), datetime(2060, 5, 1, tzinfo=UTC)
    for chain in ([later, sooner], [sooner, later]):
        text = b"a comment\n" + b"".join(map(certificate, chain))
        assert chain_end_s(text) == sooner.timestamp()


@pytest.mark.parametrize("keep", range(0, 400, 7))
def test_a_file_that_is_cut_off_or_none_has_no_end_that_is_known(keep: int) -> None:
    assert chain_end_s(certificate(datetime(2031, 5, 1, tzinfo=UTC))[:keep]) is None


@given(st.binary(max_size=200))
def test_garbage_is_no_certificate_and_raises_nothing(garbage: bytes) -> None:
    body = base64.b64encode(garbage)
    text = b"-----BEGIN CERTIFICATE-----\n" + body + b"\n-----END CERTIFICATE-----\n"
    assert chain_end_s(text) is None
    assert chain_end_s(garbage) is None


def test_a_server_says_the_end_of_what_it_shows_and_of_its_renewal(tmp_path: Path) -> None:
    old = Authority(tmp_path / "old").issue(expired=True)
    renewed = Authority(tmp_path / "new").issue()
    shown = ServerCertificate(old.certificate, old.key, None, structlog.get_logger())
    assert shown.end_s() == chain_end_s(old.certificate.read_bytes())
    old.certificate.write_bytes(renewed.certificate.read_bytes())
    old.key.write_bytes(renewed.key.read_bytes())
    assert shown.end_s() == chain_end_s(renewed.certificate.read_bytes())
    assert (shown.end_s() or 0) > datetime.now(UTC).timestamp()
