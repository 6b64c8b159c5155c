"""When the certificates of a PEM file expire. Pure.

A certificate is DER (RFC 5280, section 4.1). This skips the elements before the second time:

    Certificate ── TBSCertificate ── [0] version?  serialNumber  signature  issuer  Validity ── notBefore  notAfter

OpenSSL has checked the file before, so a certificate that cannot be parsed here is no error: its expiry is unknown.
"""

from __future__ import annotations

import re
import ssl
from datetime import UTC, datetime

_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_SEQUENCE, _VERSION, _UTC_TIME, _GENERALIZED_TIME = 0x30, 0xA0, 0x17, 0x18
# A UTCTime has two digits for the year: from 50 on they are of the last century.
_CENTURY = 50


def chain_end_s(pem: bytes) -> float | None:
    """When the first of the certificates expires, Unix s; None if one cannot be parsed, or there is none."""
    try:
        ends = [_end_s(ssl.PEM_cert_to_DER_cert(each.decode("ascii").strip())) for each in _PEM.findall(pem)]
    except (ValueError, IndexError):
        return None
    return min(ends, default=None)


def _end_s(der: bytes) -> float:
    """When a certificate expires, Unix s. Raises ValueError or IndexError for invalid DER."""
    fields = _content(_content(der, _SEQUENCE)[0], _SEQUENCE)[0]
    before = 3  # serial number, signature, issuer
    if fields[0] == _VERSION:
        before += 1
    for _ in range(before):
        fields = _content(fields)[1]
    times = _content(fields, _SEQUENCE)[0]
    end = _content(times)[1]
    text = _content(end)[0].decode("ascii")
    if end[0] == _UTC_TIME:
        text = f"{'19' if int(text[:2]) >= _CENTURY else '20'}{text}"
    elif end[0] != _GENERALIZED_TIME:
        raise ValueError(f"no time: tag {end[0]}")
    return datetime.strptime(text, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC).timestamp()


def _content(data: bytes, tag: int | None = None) -> tuple[bytes, bytes]:
    """The content of the first element, and the bytes after it."""
    if tag is not None and data[0] != tag:
        raise ValueError(f"tag {data[0]}, expected {tag}")
    length, begin = data[1], 2
    if length & 0x80:
        begin += length & 0x7F
        length = int.from_bytes(data[2:begin])
    if len(data) < begin + length:
        raise ValueError("it is cut off")
    return data[begin : begin + length], data[begin + length :]
