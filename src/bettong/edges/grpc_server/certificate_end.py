"""When the certificates of a PEM file end. Pure.

A certificate is DER (RFC 5280, section 4.1), of which this reads the lengths of what stands before the second time:

    Certificate ── TBSCertificate ── [0] version?  serialNumber  signature  issuer  Validity ── notBefore  notAfter

OpenSSL has judged the file before: what cannot be read here has no end that anybody knows, and is no error.
"""

from __future__ import annotations

import re
import ssl
from datetime import UTC, datetime

_PEM = re.compile(rb"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_SEQUENCE, _VERSION, _UTC_TIME, _GENERALIZED_TIME = 0x30, 0xA0, 0x17, 0x18
# A UTCTime has two digits of its year: from here on of the last century.
_CENTURY = 50


def chain_end_s(pem: bytes) -> float | None:
    """When the first of the certificates ends, Unix s; None where one cannot be read, or there is none."""
    try:
        ends = [_end_s(ssl.PEM_cert_to_DER_cert(each.decode("ascii").strip())) for each in _PEM.findall(pem)]
    except (ValueError, IndexError):
        return None
    return min(ends, default=None)


def _end_s(der: bytes) -> float:
    """Raises ValueError or IndexError for what is no certificate."""
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
    """Of the first element what is in it, and what is behind it."""
    if tag is not None and data[0] != tag:
        raise ValueError(f"tag {data[0]}, expected {tag}")
    length, begin = data[1], 2
    if length & 0x80:
        begin += length & 0x7F
        length = int.from_bytes(data[2:begin])
    if len(data) < begin + length:
        raise ValueError("it is cut off")
    return data[begin : begin + length], data[begin + length :]
